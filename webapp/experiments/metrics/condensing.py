"""Workers make levels; levels are removed where points are written again.

Code that writes points and code that condenses them holds the lock of the run. A stretch is condensed once all its points are final. If
points in it change later, the same transaction removes the level's rows. Points that are not condensed are read one by one, so nothing
depends on a task that was lost.
"""

import random
from collections.abc import Mapping, Sequence

import numpy as np
from django.db import connection, transaction

from webapp.core.database import locks
from webapp.core.tasks import enqueue

from ..models import Run
from . import levels, points, stored_levels

TASK = "workers.runs.condense"
EVERY = 512  # steps of a run, on average
# under one lock: 65,536 points, which take less than a tenth of a second
KEYS_AT_ONCE = 16
POINTS_AT_ONCE = 16 * levels.ROW

# level 0 alone tells whether any row holds the step; mostly none does
FORGOTTEN = """
WITH again AS (
    SELECT key, step FROM unnest(%(keys)s::text[], %(steps)s::int[]) AS told(key, step)
    WHERE EXISTS (
        SELECT FROM experiments_metriclevel AS row
        WHERE row.run_id = %(run)s AND row.key = told.key AND row.level = 0 AND row.last_step >= told.step
    )
)
DELETE FROM experiments_metriclevel AS row USING again
WHERE row.run_id = %(run)s AND row.key = again.key AND row.last_step >= again.step
"""
WRITTEN = """
INSERT INTO experiments_metriclevel (run_id, key, level, number, last_step, points, means)
SELECT %(run)s, *
FROM unnest(%(keys)s::text[], %(levels)s::int[], %(numbers)s::int[], %(steps)s::int[], %(points)s::bytea[], %(means)s::bytea[])
"""


def written(run_id: int, again: Mapping[str, int], steps: int) -> None:
    """Removes the levels of each key in `again` from its step on: points came late or again there. `steps` is the number of steps that were
    written. The caller holds the lock of the run."""
    if again:
        with connection.cursor() as cursor:
            cursor.execute(FORGOTTEN, {"run": run_id, "keys": list(again), "steps": list(again.values())})
    # by chance: nobody counts the points of a run, and a stretch that waits a little longer costs little
    if random.random() * EVERY < steps:  # noqa: S311
        enqueue(TASK, run_id)


def condense(run_id: int) -> None:
    """Brings the levels of a run up to date. Does nothing if another worker is doing it."""
    with locks.exclusive(locks.Work.LEVELS, run_id) as ours:
        waiting = _keys(run_id) if ours else []
        while waiting:
            now, waiting = waiting[:KEYS_AT_ONCE], waiting[KEYS_AT_ONCE:]
            waiting = _condense(run_id, now) + waiting


def _keys(run_id: int) -> list[str]:
    """Keys that are drawn as curves: not histograms. The newest value may be NaN, of a run that has diverged."""
    return [each.key for each in points.newest([run_id])[run_id] if each.is_number]


def _condense(run_id: int, keys: list[str]) -> list[str]:
    """Condenses the keys and returns those that may have more points to condense."""
    with transaction.atomic():
        if not Run.objects.select_for_update(no_key=True).filter(pk=run_id).exists():
            return []
        stored_levels.forget_old(run_id, keys)
        reach = stored_levels.covered(run_id, keys)
        parts: dict[int, list[levels.Points]] = {}
        after = [each.steps.get(0, -1) for each in reach]
        for place, piece in points.read_points(run_id, keys, after, POINTS_AT_ONCE):
            parts.setdefault(place, []).append(piece)
        tails = {place: np.concatenate(each) for place, each in parts.items()}
        fresh = {place: levels.whole_rows(tail) for place, tail in tails.items() if len(tail) >= levels.ROW}
        if fresh:
            write(run_id, keys, reach, fresh)
    return [keys[place] for place, tail in tails.items() if len(tail) == POINTS_AT_ONCE]


def write(
    run_id: int, keys: Sequence[str], reach: Sequence[stored_levels.Covered], fresh: Mapping[int, list[levels.LevelRow]]
) -> None:
    """Writes rows of level 0, and for each further level those that are complete now."""
    wanted = [(place, level, reach[place].beyond(level)) for place in fresh for level in reach[place].rows]
    waiting: dict[tuple[int, int], list[levels.LevelRow]] = {}
    for place, level, row in stored_levels.whole_rows(run_id, keys, wanted):
        waiting.setdefault((place, level), []).append(row)
    made: list[tuple[str, int, int, int, bytes, bytes]] = []
    for place, rows in fresh.items():
        level, new = 0, rows
        while new and level <= levels.HIGHEST:
            first = reach[place].rows.get(level, 0)
            made += [(keys[place], level, first + i, levels.last_step(row.points), *row) for i, row in enumerate(new)]
            four = waiting.get((place, level), []) + new
            new = [
                levels.merged_rows(four[i : i + levels.FANOUT])
                for i in range(0, len(four) - levels.FANOUT + 1, levels.FANOUT)
            ]
            level += 1
    names = ("keys", "levels", "numbers", "steps", "points", "means")
    with connection.cursor() as cursor:
        cursor.execute(WRITTEN, {"run": run_id, **dict(zip(names, map(list, zip(*made, strict=True)), strict=True))})
