"""Says of an unknown key of a config which field was meant, or which fields there are."""

from collections.abc import Iterator, Sequence
from difflib import get_close_matches
from typing import Any, get_args

from .fields import Section

ALIKE = 0.6  # of 1: how much the letters of two names must agree
MOST = 30  # names in a message


def unknown_key(recipe: str, schema: type[Section], loc: Sequence[str], chosen: str = "") -> str:
    """The message at an unknown key: the field that was meant, or else the fields beside it, and where all are listed.

    `chosen` is the kind of the section, if it may be of several: only its fields are listed.
    """
    *folders, key = loc
    kinds = _kinds(schema, folders)
    beside = _fields(kinds)
    if key in beside:
        return "unknown key; only another kind of this section has it"
    if near := _closest(kinds, folders, key, beside):
        return f"unknown key; did you mean {near}?"
    beside = _fields([kind for kind in kinds if _is(kind, chosen)] or kinds)
    more = f" and {len(beside) - MOST} more" if len(beside) > MOST else ""
    listed = f"GET /api/v1/recipes/{recipe}/schema lists all"
    return f"unknown key; here are {', '.join(beside[:MOST])}{more} ({listed})"


def _kinds(schema: type[Section], folders: Sequence[str]) -> list[type[Section]]:
    """The sections that may be in this place."""
    kinds = [schema]
    for part in folders:
        kinds = [inner for kind in kinds if part in kind.model_fields for inner in _sections(kind, part)] or kinds
    return kinds


def _fields(kinds: Sequence[type[Section]]) -> list[str]:
    return list(dict.fromkeys(name for kind in kinds for name in kind.model_fields))


def _is(kind: type[Section], chosen: str) -> bool:
    return any(get_args(field.annotation) == (chosen,) for field in kind.model_fields.values())


def _closest(kinds: Sequence[type[Section]], folders: Sequence[str], key: str, beside: Sequence[str]) -> str:
    """The path of the field beside the unknown key, or of a field of this name in a section beside it; empty if there is none like it."""
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
