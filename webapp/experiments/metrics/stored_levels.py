"""Levels as the database has them.

Rows of one level follow one another without a gap from the first point on, and a row of the next level stands for `FANOUT` of them. A
writer removes only the end of a level.
"""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from typing import Any

from django.db import connection

from . import levels
from .models import MetricLevel

COVERED = """
SELECT wanted.place - 1, level, newest.number + 1, newest.last_step
FROM unnest(%(runs)s::bigint[], %(keys)s::text[]) WITH ORDINALITY AS wanted(run_id, key, place)
CROSS JOIN generate_series(0, %(highest)s) AS level
CROSS JOIN LATERAL (
    SELECT number, last_step FROM experiments_metriclevel AS row
    WHERE row.run_id = wanted.run_id AND row.key = wanted.key AND row.level = level.level ORDER BY last_step DESC LIMIT 1
) AS newest
"""
ROWS = """
SELECT wanted.place, wanted.level, {columns}
FROM unnest(%(places)s::int[], %(keys)s::text[], %(levels)s::int[], %(after)s::int[]) AS wanted(place, key, level, after)
CROSS JOIN LATERAL (
    SELECT last_step, points, means FROM experiments_metriclevel AS row
    WHERE row.run_id = %(run)s AND row.key = wanted.key AND row.level = wanted.level AND row.last_step > wanted.after
) AS found
ORDER BY wanted.place, found.last_step
"""
POINTS, BOTH = ROWS.format(columns="points"), ROWS.format(columns="points, means")
# OFFSET 0 keeps them looks into the index, one after the other: the database cannot know that few rows are found
MEANS = """
SELECT wanted.place, wanted.level, found.means
FROM unnest(%(places)s::int[], %(runs)s::bigint[], %(levels)s::int[], %(after)s::int[], %(until)s::int[])
    AS wanted(place, run_id, level, after, until)
CROSS JOIN LATERAL (
    SELECT means FROM experiments_metriclevel AS row
    WHERE row.run_id = wanted.run_id AND row.key = %(key)s AND row.level = wanted.level
        AND row.last_step > wanted.after AND row.last_step <= wanted.until
    OFFSET 0
) AS found
"""
# Metrics with rows from before there were means. Only rows are read that no row of the next level stands for yet: a worker of before, which
# made rows without means, made none with means of them.
OLD = """
SELECT wanted.key FROM unnest(%(keys)s::text[]) AS wanted(key)
WHERE EXISTS (
    SELECT FROM generate_series(0, %(highest)s) AS level
    CROSS JOIN LATERAL (
        SELECT coalesce(max(last_step), -1) AS until FROM experiments_metriclevel AS row
        WHERE row.run_id = %(run)s AND row.key = wanted.key AND row.level = level.level + 1
    ) AS above
    CROSS JOIN LATERAL (
        SELECT FROM experiments_metriclevel AS row
        WHERE row.run_id = %(run)s AND row.key = wanted.key AND row.level = level.level AND row.last_step > above.until
            AND row.means IS NULL
        LIMIT 1
    ) AS waiting
)
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
    return covered_each([run_id] * len(keys), keys)


def covered_each(run_ids: Sequence[int], keys: Sequence[str]) -> list[Covered]:
    """One for each run with its key."""
    found = [Covered() for _ in keys]
    with connection.cursor() as cursor:
        cursor.execute(COVERED, {"runs": list(run_ids), "keys": list(keys), "highest": levels.HIGHEST})
        for place, level, count, last_step in cursor.fetchall():
            found[place].rows[level], found[place].steps[level] = count, last_step
    return found


def rows(run_id: int, keys: Sequence[str], wanted: Iterable[tuple[int, int, int]]) -> list[tuple[int, int, bytes]]:
    """(place, level, row) by place and step, of each (place of a key, level, step) wanted the rows that end behind the step."""
    return [(place, level, bytes(row)) for place, level, row in _rows(POINTS, run_id, keys, list(wanted))]


def whole_rows(
    run_id: int, keys: Sequence[str], wanted: Iterable[tuple[int, int, int]]
) -> list[tuple[int, int, levels.LevelRow]]:
    """Like `rows`, with the means."""
    found = _rows(BOTH, run_id, keys, list(wanted))
    return [(place, level, levels.LevelRow(bytes(points), bytes(means))) for place, level, points, means in found]


def _rows(statement: str, run_id: int, keys: Sequence[str], wanted: Sequence[tuple[int, int, int]]) -> list[Any]:
    given: dict[str, Any] = {
        "run": run_id,
        "places": [place for place, _, _ in wanted],
        "keys": [keys[place] for place, _, _ in wanted],
        "levels": [level for _, level, _ in wanted],
        "after": [after for _, _, after in wanted],
    }
    return _found(statement, given) if wanted else []


def means(
    run_ids: Sequence[int], key: str, wanted: Sequence[tuple[int, int, int, int]]
) -> list[tuple[int, int, bytes | None]]:
    """(place, level, means of a row) of each (place of a run, level, step, step) wanted: of the rows that end behind the first step, and not behind
    the second. None: of a row that was made before there were means."""
    if not wanted:
        return []
    places, level, after, until = map(list, zip(*wanted, strict=True))
    of = [run_ids[place] for place in places]
    given: dict[str, Any] = {"places": places, "runs": of, "levels": level, "after": after, "until": until, "key": key}
    return _found(MEANS, given)


def forget_old(run_id: int, keys: Sequence[str]) -> None:
    """Removes the levels of metrics of which a row has no means. The caller holds the lock of the run."""
    old = [key for (key,) in _found(OLD, {"run": run_id, "keys": list(keys), "highest": levels.HIGHEST})]
    if old:
        MetricLevel.objects.filter(run_id=run_id, key__in=old).delete()


def _found(statement: str, given: dict[str, Any]) -> list[Any]:
    with connection.cursor() as cursor:
        cursor.execute(statement, given)
        found: list[Any] = cursor.fetchall()
    return found
