"""Points and levels as the database has them.

Rows of one level follow one another without a gap from the first point on, and a row of the next level stands for `FANOUT` of them.
What a writer takes away is the end of every level.
"""

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from itertools import pairwise
from typing import Any

import numpy as np
from django.db import connection

from . import levels
from .levels import Points

COVERED = """
SELECT wanted.place - 1, level, newest.number + 1, newest.last_step
FROM unnest(%(keys)s::text[]) WITH ORDINALITY AS wanted(key, place) CROSS JOIN generate_series(0, %(highest)s) AS level
CROSS JOIN LATERAL (
    SELECT number, last_step FROM experiments_metriclevel AS row
    WHERE row.run_id = %(run)s AND row.key = wanted.key AND row.level = level.level ORDER BY last_step DESC LIMIT 1
) AS newest
"""
ROWS = """
SELECT wanted.place, wanted.level, found.points
FROM unnest(%(places)s::int[], %(keys)s::text[], %(levels)s::int[], %(after)s::int[]) AS wanted(place, key, level, after)
CROSS JOIN LATERAL (
    SELECT last_step, points FROM experiments_metriclevel AS row
    WHERE row.run_id = %(run)s AND row.key = wanted.key AND row.level = wanted.level AND row.last_step > wanted.after
) AS found
ORDER BY wanted.place, found.last_step
"""
POINTS = """
COPY (
    SELECT wanted.place, found.step, found.value, found.time
    FROM unnest(%(places)s::int[], %(keys)s::text[], %(after)s::int[]) AS wanted(place, key, after)
    CROSS JOIN LATERAL (
        SELECT step, value, time FROM experiments_metricpoint
        WHERE run_id = %(run)s AND key = wanted.key AND step > wanted.after AND value IS NOT NULL
        ORDER BY step LIMIT %(most)s
    ) AS found
) TO STDOUT (FORMAT binary)
"""
# a row of the binary form of COPY: how many cells, and each behind its length
COPIED = np.dtype(
    [("cells", ">i2"), ("_0", ">i4"), ("place", ">i4"), ("_1", ">i4"), ("step", ">i4")]
    + [("_2", ">i4"), ("value", ">f8"), ("_3", ">i4"), ("at", ">i8")]
)
HEADER = 19  # bytes before the first row
BLOCK = 65_536  # rows


@dataclass
class Covered:
    """How far the levels of one metric reach: of each level that it has, the number of rows and the last step."""

    rows: dict[int, int] = field(default_factory=dict)
    steps: dict[int, int] = field(default_factory=dict)

    def beyond(self, level: int) -> int:
        """The last step that the next level has."""
        return self.steps.get(level + 1, -1)


def covered(run_id: int, keys: Sequence[str]) -> list[Covered]:
    found = [Covered() for _ in keys]
    with connection.cursor() as cursor:
        cursor.execute(COVERED, {"run": run_id, "keys": list(keys), "highest": levels.HIGHEST})
        for place, level, count, last_step in cursor.fetchall():
            found[place].rows[level], found[place].steps[level] = count, last_step
    return found


def rows(run_id: int, keys: Sequence[str], wanted: Iterable[tuple[int, int, int]]) -> list[tuple[int, int, bytes]]:
    """(place, level, row) by place and step, of each (place of a key, level, step) wanted the rows that end behind the step."""
    asked = list(wanted)
    if not asked:
        return []
    given: dict[str, Any] = {
        "run": run_id,
        "places": [place for place, _, _ in asked],
        "keys": [keys[place] for place, _, _ in asked],
        "levels": [level for _, level, _ in asked],
        "after": [after for _, _, after in asked],
    }
    with connection.cursor() as cursor:
        cursor.execute(ROWS, given)
        return [(place, level, bytes(row)) for place, level, row in cursor.fetchall()]


def points(
    run_id: int, keys: Sequence[str], after: Sequence[int], most: int | None = None
) -> Iterator[tuple[int, Points]]:
    """(place of a key, its points behind the step `after`, at most `most`), in pieces that follow one another.

    As a binary copy: numbers that became objects of Python on their way would take several times as long.
    """
    given: dict[str, Any] = {
        "run": run_id,
        "places": list(range(len(keys))),
        "keys": list(keys),
        "after": list(after),
        "most": most,
    }
    statement = connection.ops.compose_sql(POINTS, given)  # type: ignore[attr-defined]  # a COPY takes no values beside it
    held, skipped = bytearray(), False
    with (
        connection.cursor() as cursor,
        connection.wrap_database_errors,
        cursor.copy(statement) as copied,
    ):
        for block in copied:
            held += block
            if not skipped and len(held) >= HEADER:
                del held[:HEADER]
                skipped = True
            if len(held) >= BLOCK * COPIED.itemsize:
                yield from _pieces(held)
    yield from _pieces(held)


def _pieces(copied: bytearray) -> Iterator[tuple[int, Points]]:
    """Takes the whole rows from the front."""
    whole = len(copied) // COPIED.itemsize
    found = np.frombuffer(bytes(copied[: whole * COPIED.itemsize]), COPIED)
    del copied[: whole * COPIED.itemsize]
    made = np.empty(whole, levels.POINT)
    for name in ("step", "value", "at"):
        made[name] = found[name]
    starts = np.flatnonzero(np.diff(found["place"], prepend=-1)).tolist()
    for start, end in pairwise([*starts, whole]):
        yield int(found["place"][start]), made[start:end]
