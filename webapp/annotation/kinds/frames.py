"""Converts answers between letters and ids: see `records`."""

from collections.abc import Mapping, Sequence
from typing import Any

from .records import letters
from .registry import get_kind


def to_subject(kind: str, content: dict[str, Any], subject: Mapping[str, Any], order: Sequence[int]) -> dict[str, Any]:
    """The answer in the subject's frame: letters become ids, and the signs of a swapped pair change.

    Raises ValueError for a letter that was not shown.
    """
    return _renamed(kind, content, letters(subject, order), swapped=list(order) == [1, 0])


def to_shown(kind: str, content: dict[str, Any], subject: Mapping[str, Any], order: Sequence[int]) -> dict[str, Any]:
    """The inverse of `to_subject`."""
    names = {side: letter for letter, side in letters(subject, order).items()}
    return _renamed(kind, content, names, swapped=list(order) == [1, 0])


def _renamed(kind: str, content: dict[str, Any], names: Mapping[str, str], *, swapped: bool) -> dict[str, Any]:
    def name(side: str) -> str:
        if side not in names:
            raise ValueError(f"there is no response {side!r} in this task")
        return names[side]

    return get_kind(kind).renamed(content, name, swapped=swapped)
