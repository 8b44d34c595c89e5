"""Compares two JSON values, field by field."""

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

MISSING = object()


@dataclass(frozen=True)
class Change:
    """`before` or `after` is MISSING if the field is only on one side."""

    where: tuple[str | int, ...]
    before: Any
    after: Any

    @property
    def path(self) -> str:
        return ".".join(map(str, self.where))


def differing(before: Any, after: Any, where: tuple[str | int, ...] = ()) -> Iterator[Change]:
    """The smallest fields in which two JSON values differ; lists are compared place by place."""
    if isinstance(before, dict) and isinstance(after, dict):
        for name in sorted(before.keys() | after.keys()):
            one, other = before.get(name, MISSING), after.get(name, MISSING)
            if not _same(one, other):
                yield from differing(one, other, (*where, name))
    elif isinstance(before, list) and isinstance(after, list):
        for index in range(max(len(before), len(after))):
            one = before[index] if index < len(before) else MISSING
            other = after[index] if index < len(after) else MISSING
            if not _same(one, other):
                yield from differing(one, other, (*where, index))
    elif before != after or type(before) is not type(after):
        yield Change(where, before, after)


def _same(one: Any, other: Any) -> bool:
    """Compared in C, because most fields are the same; 1, 1.0 and True are equal in Python, but not the same."""
    return one == other and (type(one) is str or repr(one) == repr(other))
