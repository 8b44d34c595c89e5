"""How config fields are declared: bounds validate, help and units draw the web form."""

from typing import Any

from pydantic import BaseModel, ConfigDict, Field, JsonValue


class Section(BaseModel):
    """Strict about keys and types: an unknown key or a string where a number belongs is an error at that field."""

    model_config = ConfigDict(extra="forbid", frozen=True, strict=True, allow_inf_nan=False)


def knob(default: Any, help: str, *, unit: str = "", advanced: bool = False, source: str = "", **bounds: Any) -> Any:
    """A config field. `advanced` fields are folded away in the form; `unit` is shown behind the input; `source` names
    the kind of row whose id it holds, so that the form offers those there are."""
    extra: dict[str, JsonValue] = {"unit": unit, "advanced": advanced}
    if source:
        extra["source"] = source
    return Field(default, description=help, json_schema_extra=extra, **bounds)
