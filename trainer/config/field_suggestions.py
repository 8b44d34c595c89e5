"""Finds the field of a config whose name is nearest to an unknown key."""

from collections.abc import Iterator, Sequence
from difflib import get_close_matches
from typing import Any, get_args

from .fields import Section

ALIKE = 0.6  # of 1: how much the letters of two names must agree


def closest_field(schema: type[Section], loc: Sequence[str]) -> str:
    """The path of the field beside the unknown key, or of a field of this name in a section beside it; empty if there is none like it."""
    *folders, key = loc
    kinds = [schema]
    for part in folders:
        kinds = [inner for kind in kinds if part in kind.model_fields for inner in _sections(kind, part)] or kinds
    beside = sorted({name for kind in kinds for name in kind.model_fields})
    if key in beside:  # of another kind of this section
        return ""
    if found := get_close_matches(key, beside, 1, ALIKE):
        return ".".join([*folders, found[0]])
    below = [
        name
        for kind in kinds
        for name in kind.model_fields
        for inner in _sections(kind, name)
        if key in inner.model_fields
    ]
    return ".".join([*folders, below[0], key]) if below else ""


def _sections(kind: type[Section], name: str) -> list[type[Section]]:
    return list(_within(kind.model_fields[name].annotation))


def _within(annotation: Any) -> Iterator[type[Section]]:
    """The sections that a field may hold, also as items of a list."""
    if isinstance(annotation, type) and issubclass(annotation, Section):
        yield annotation
    for each in get_args(annotation):
        yield from _within(each)
