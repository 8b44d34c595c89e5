"""Finds the prompts and groups that the rows of one import put on both sides of the split, and the side that each should have.

Batches are read at the same time, so the side of a row is decided without the other rows. Nearly always this is enough, because the reason
is
the same for all rows of a prompt. It is not enough if some rows of a prompt name a side and others leave it to the draw, if a file
contradicts
itself, or if two groups share a prompt. Then the import is read once more with the sides that are settled here.
"""

from collections.abc import Iterable, Sequence
from typing import Any, NamedTuple, Protocol, cast

from django.db import connection

from trainer.contracts.example import Split

from ..versions.split_rule import Settled

# rows that an earlier version has on both sides are left alone (ground 0)
BOTH = """
    SELECT unit FROM (
        SELECT prompt_hash AS unit, split FROM {rows} WHERE ground > 0
        UNION ALL
        SELECT group_hash, split FROM {rows} WHERE ground > 0 AND group_hash <> 0
    ) AS sided
    GROUP BY unit HAVING bool_or(split = 'train') AND bool_or(split = 'heldout')
"""
SHARED = "SELECT DISTINCT prompt_hash, group_hash FROM {rows} WHERE group_hash <> 0"
CLAIMS = """
    SELECT prompt_hash, group_hash, split, ground, file, line FROM {rows}
    WHERE ground > 0 AND split <> '' AND (prompt_hash = ANY(%s) OR group_hash = ANY(%s))
    ORDER BY ground, file, line
"""


class SideClaim(NamedTuple):
    """The side of a row and its ground. `place` is (number of the file, line)."""

    prompt: int
    group: int
    split: str
    ground: int
    place: tuple[int, int]


class SideClaims(Protocol):
    """The rows of an import, without those that contradict earlier versions (ground 0)."""

    def on_both(self) -> set[int]:
        """The prompts and groups that they put on both sides."""

    def shared(self) -> Iterable[tuple[int, int]]:
        """(prompt, group) of every row with a group."""

    def claims(self, units: list[int]) -> Iterable[SideClaim]:
        """The claims of the rows with one of these prompts or groups: the firmest ground first, then in the order of the files."""


class InTable:
    """The rows in the table of an import. Its name comes from code."""

    def __init__(self, table: str) -> None:
        self._table = table

    def on_both(self) -> set[int]:
        return {unit for (unit,) in self._fetched(BOTH)}

    def shared(self) -> list[tuple[int, int]]:
        return self._fetched(SHARED)

    def claims(self, units: list[int]) -> list[SideClaim]:
        rows = self._fetched(CLAIMS, units, units)
        return [
            SideClaim(prompt, group, split, ground, (file, line)) for prompt, group, split, ground, file, line in rows
        ]

    def _fetched(self, sql: str, *values: Any) -> list[Any]:
        with connection.cursor() as cursor:
            cursor.execute(sql.format(rows=self._table), values)
            return list(cursor.fetchall())


class InMemory:
    """A few rows that are in memory."""

    def __init__(self, rows: Iterable[SideClaim]) -> None:
        self._rows = [row for row in rows if row.ground and row.split]

    def on_both(self) -> set[int]:
        sides: dict[int, set[str]] = {}
        for row in self._rows:
            for unit in filter(None, (row.prompt, row.group)):
                sides.setdefault(unit, set()).add(row.split)
        return {unit for unit, found in sides.items() if len(found) > 1}

    def shared(self) -> set[tuple[int, int]]:
        return {(row.prompt, row.group) for row in self._rows if row.group}

    def claims(self, units: list[int]) -> list[SideClaim]:
        wanted = set(units)
        found = [row for row in self._rows if row.prompt in wanted or row.group in wanted]
        return sorted(found, key=lambda row: (row.ground, row.place))


def settled(rows: SideClaims, names: Sequence[str]) -> dict[int, Settled]:
    """For each prompt or group on both sides, the side of the first row with the firmest ground. `names` are those of the files."""
    both = rows.on_both()
    if not both:
        return {}
    roots = _joined(rows.shared())
    apart = {_root(roots, unit) for unit in both}
    units = [unit for unit in {*both, *roots} if _root(roots, unit) in apart]
    sides: dict[int, Settled] = {}
    for claim in rows.claims(units):
        file, line = claim.place
        where = f"line {line}" + (f" of {names[file]}" if len(names) > 1 else "")
        sides.setdefault(_root(roots, claim.group or claim.prompt), Settled(cast(Split, claim.split), where))
    return {unit: sides[_root(roots, unit)] for unit in units}


def _joined(pairs: Iterable[tuple[int, int]]) -> dict[int, int]:
    """Union-find over prompts and groups: those that share a row belong on one side."""
    roots: dict[int, int] = {}
    for prompt, group in pairs:
        roots.setdefault(group, group)
        roots[_root(roots, prompt)] = _root(roots, group)
    return roots


def _root(roots: dict[int, int], unit: int) -> int:
    while (above := roots.get(unit, unit)) != unit:
        roots[unit] = roots.get(above, above)
        unit = above
    return unit
