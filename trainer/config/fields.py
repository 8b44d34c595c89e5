"""How fields of a config are declared: bounds validate them; help and units are for the web form."""

from typing import Any

from pydantic import BaseModel, ConfigDict, Field, JsonValue


class Section(BaseModel):
    """A section is strict about keys and types: an unknown key, or a string in the place of a number, is an error at that field."""

    model_config = ConfigDict(extra="forbid", frozen=True, strict=True, allow_inf_nan=False)


When = tuple[str, tuple[str, ...]]
"""Another field of the section, and its values with which this field is read; no values: any that is not empty."""


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
    """A field of a config.

    The form folds `advanced` fields away and shows `unit` behind the input. `source` is the kind of row that the field names, so that the
    form offers such rows. The form leaves the field out if `when` does not hold. It draws the field in the section `beside`, if one is
    named.
    """
    extra: dict[str, JsonValue] = {"unit": unit, "advanced": advanced}
    if source:
        extra["source"] = source
    if beside:
        extra["beside"] = beside
    if when:
        extra["when"] = {"field": when[0], "values": list(when[1])}
    return Field(default, description=help, json_schema_extra=extra, **bounds)
