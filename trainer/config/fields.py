"""Declares fields of a config: bounds validate them; help and units are for the web form."""

from collections.abc import Mapping
from typing import Any, Literal, get_args, get_origin

from pydantic import BaseModel, ConfigDict, Field, JsonValue, model_validator


class Section(BaseModel):
    """A section is strict about keys and types: an unknown key, or a string in the place of a number, is an error at that field.

    A section inside it that is given in part has the rest of its fields from the default here, which may differ from those of its class.
    """

    model_config = ConfigDict(extra="forbid", frozen=True, strict=True, allow_inf_nan=False)

    @model_validator(mode="before")
    @classmethod
    def _fill_sections(cls, given: Any) -> Any:
        if not isinstance(given, Mapping):
            return given
        defaults = {name: cls.model_fields[name].default for name in given if name in cls.model_fields}
        return {name: _filled(value, defaults.get(name)) for name, value in given.items()}


def _filled(given: Any, default: Any) -> Any:
    """The part of a section with what its default sets. A section of another kind than the default takes nothing from it."""
    if not (isinstance(given, Mapping) and isinstance(default, Section)):
        return given
    kinds = {
        name: getattr(default, name)
        for name, field in type(default).model_fields.items()
        if _names_kind(field.annotation)
    }
    if any(name in given and given[name] != kind for name, kind in kinds.items()):
        return given
    known = {name: getattr(default, name) for name in default.model_fields_set}
    return {**known, **kinds, **{name: _filled(value, known.get(name)) for name, value in given.items()}}


def _names_kind(annotation: Any) -> bool:
    """Whether a field has one possible value, by which a section is told from others in its place."""
    return get_origin(annotation) is Literal and len(get_args(annotation)) == 1


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
