"""How config fields are declared: bounds validate, help and units draw the web form."""

from typing import Any

from pydantic import BaseModel, ConfigDict, Field, JsonValue


class Section(BaseModel):
    """Strict about keys and types: an unknown key or a string where a number belongs is an error at that field."""

    model_config = ConfigDict(extra="forbid", frozen=True, strict=True, allow_inf_nan=False)


When = tuple[str, tuple[str, ...]]
"""A field beside this one, and the values of it for which this one is read; no values: any that is not empty."""


def knob(
    default: Any,
    help: str,
    *,
    unit: str = "",
    advanced: bool = False,
    source: str = "",
    when: When | None = None,
    beside: str = "",
    **bounds: Any,
) -> Any:
    """A config field. `advanced` fields are folded away in the form; `unit` is shown behind the input; `source` names
    the kind of row that it names, so that the form offers those there are; the form leaves it out where `when` does not
    hold, and draws it in the section `beside` it where that is named."""
    extra: dict[str, JsonValue] = {"unit": unit, "advanced": advanced}
    if source:
        extra["source"] = source
    if beside:
        extra["beside"] = beside
    if when:
        extra["when"] = {"field": when[0], "values": list(when[1])}
    return Field(default, description=help, json_schema_extra=extra, **bounds)
