"""Levels as the database has them.

Rows of one level follow one another without a gap from the first point on, and a row of the next level stands for `FANOUT` of them. A
writer removes only the end of a level.
"""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from typing import Any

from django.db import connection

from . import levels

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


@dataclass
class Covered:
    """The reach of the levels of one metric: for each level, the number of rows and the last step."""

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
