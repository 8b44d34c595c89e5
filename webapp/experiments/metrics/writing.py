"""The one writer of points. The caller holds the lock of the run.

Finite values whose steps lie behind all that is stored of their metric are packed into stretches, or go to the end of the last one. All
others become rows: before that, a stretch that holds one of their steps becomes rows too, so that what a repeat does to a point is said
once, in the statements over rows.

Each write tells the levels what came again (`condensing.written`), in the same transaction.
"""

import json
import math
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime
from typing import Any

from django.db import connection

from webapp.core import prepared

from ..bulk import StepMetrics
from . import condensing
from .points import LoggedPoint

# a value and a histogram of one step may come in two events: what is new replaces, what is absent stays
STEPS = """
INSERT INTO experiments_metricpoint AS old (run_id, key, step, time, value, histogram)
SELECT %s, key, step, time, (values ->> key)::float8, histograms -> key
FROM jsonb_to_recordset(%s::jsonb) AS new(step int, time timestamptz, values jsonb, histograms jsonb)
    CROSS JOIN LATERAL jsonb_object_keys(values || histograms) AS key
ON CONFLICT (run_id, key, step) DO UPDATE SET
    time = EXCLUDED.time,
    value = COALESCE(EXCLUDED.value, old.value),
    histogram = COALESCE(EXCLUDED.histogram, old.histogram)
"""
# What comes late, by the clock of who sent it, does not replace what is there. The rows of one statement come in one order, and
# each place once: the newest, of equals the last.
LOGGED = """
INSERT INTO experiments_metricpoint AS old (run_id, key, step, time, value, not_finite)
SELECT %(run)s, key, step, time, CASE WHEN not_finite = '' THEN value END, not_finite
FROM unnest(%(keys)s::text[], %(steps)s::int[], %(times)s::timestamptz[], %(values)s::float8[], %(others)s::text[])
    AS new(key, step, time, value, not_finite)
ON CONFLICT (run_id, key, step) DO UPDATE SET
    time = EXCLUDED.time, value = EXCLUDED.value, not_finite = EXCLUDED.not_finite
WHERE old.time <= EXCLUDED.time
"""


# How far each key is: its last stretch, and its last row. The limit keeps Postgres from reading all of them.
ENDS = """
SELECT wanted.place - 1, stretch.id, stretch.count, stretch.last_step, row.step
FROM unnest(%(keys)s::text[]) WITH ORDINALITY AS wanted(key, place)
LEFT JOIN LATERAL (
    SELECT id, last_step, cardinality(steps) AS count FROM experiments_metricstretch
    WHERE run_id = %(run)s::bigint AND key = wanted.key ORDER BY first_step DESC LIMIT 1
) AS stretch ON true
LEFT JOIN LATERAL (
    SELECT step FROM experiments_metricpoint WHERE run_id = %(run)s::bigint AND key = wanted.key ORDER BY step DESC LIMIT 1
) AS row ON true
"""
# Keys that were measured at the same steps share these: `grids` has each once. Texts of arrays, because that is what Postgres reads fastest.
GRIDS = """
WITH grids AS MATERIALIZED (
    SELECT place - 1 AS grid, steps::int[] AS steps, times::timestamptz[] AS times
    FROM unnest(%(steps)s::text[], %(times)s::text[]) WITH ORDINALITY AS told(steps, times, place)
)
"""
APPENDED = (
    GRIDS
    + """
UPDATE experiments_metricstretch AS stretch SET
    last_step = grids.steps[cardinality(grids.steps)], steps = stretch.steps || grids.steps,
    numbers = stretch.numbers || told.numbers::float8[], times = stretch.times || grids.times
FROM unnest(%(ids)s::bigint[], %(grids)s::int[], %(numbers)s::text[]) AS told(id, grid, numbers) JOIN grids USING (grid)
WHERE stretch.id = told.id
"""
)
BEGUN = (
    GRIDS
    + """
INSERT INTO experiments_metricstretch (run_id, key, first_step, last_step, steps, numbers, times)
SELECT %(run)s, told.key, steps[1], steps[cardinality(steps)], steps, told.numbers::float8[], times
FROM unnest(%(keys)s::text[], %(grids)s::int[], %(numbers)s::text[]) AS told(key, grid, numbers) JOIN grids USING (grid)
"""
)
# Stretches that hold one of the steps become rows again, to which all that is said of repeats applies. A row that is there already can
# only be of a server of before that went on writing during an upgrade: it is newer.
UNPACKED = """
WITH gone AS (
    DELETE FROM experiments_metricstretch AS stretch
    WHERE run_id = %(run)s AND key = ANY(%(keys)s) AND EXISTS (
        SELECT FROM unnest(%(keys)s::text[], %(steps)s::int[]) AS told(key, step)
        WHERE told.key = stretch.key AND told.step BETWEEN stretch.first_step AND stretch.last_step
    )
    RETURNING key, steps, numbers, times
)
INSERT INTO experiments_metricpoint (run_id, key, step, time, value)
SELECT %(run)s, key, point.step, point.time, point.value
FROM gone CROSS JOIN LATERAL unnest(steps, numbers, times) AS point(step, value, time)
ON CONFLICT (run_id, key, step) DO NOTHING
"""
MOST = 90  # values of a stretch: its row stays below the 2 kB from which on Postgres would compress it at every write


@dataclass
class Packable:
    """Finite values of one key by step, in the order in which they came."""

    steps: list[int] = field(default_factory=list)
    numbers: list[float] = field(default_factory=list)
    times: list[datetime] = field(default_factory=list)


def steps(run_id: int, told: Iterable[StepMetrics]) -> None:
    """Stores the points of a training process. No two entries may have the same step: Postgres refuses to update a row twice in one
    statement."""
    by_step = sorted(told, key=lambda each: each.step)
    if not by_step:
        return
    series: dict[str, Packable] = {}
    pictured: set[str] = set()
    for each in by_step:
        pictured |= each.histograms.keys()
        for key, value in each.values.items():
            one = series.setdefault(key, Packable())
            one.steps.append(each.step)
            one.numbers.append(value)
            one.times.append(each.time)
    first = {key: one.steps[0] for key, one in series.items()}
    as_rows = _pack(run_id, {key: one for key, one in series.items() if key not in pictured}) | pictured
    if as_rows:
        _unpack(run_id, ((key, each.step) for each in by_step for key in {*each.values, *each.histograms} & as_rows))
        _upsert(run_id, by_step, as_rows)
    condensing.written(run_id, first, len(by_step))


def _upsert(run_id: int, by_step: Iterable[StepMetrics], keys: set[str]) -> None:
    rows = [
        {
            "step": each.step,
            "time": each.time.isoformat(),
            "values": {key: value for key, value in each.values.items() if key in keys},
            "histograms": each.histograms,
        }
        for each in by_step
    ]
    with connection.cursor() as cursor:
        cursor.execute(STEPS, [run_id, json.dumps(rows)])


def logged(run_id: int, told: Sequence[LoggedPoint]) -> None:
    """Stores the points of a program elsewhere: by its clock, the newest of each step stays."""
    newest: dict[tuple[str, int], LoggedPoint] = {}
    for point in told:
        place = (point.key, point.step)
        if place not in newest or newest[place].time <= point.time:
            newest[place] = point
    rows = [newest[place] for place in sorted(newest)]
    series: dict[str, Packable] = {}
    for each in rows:
        one = series.setdefault(each.key, Packable())
        one.steps.append(each.step)
        one.numbers.append(each.value)
        one.times.append(each.time)
    first = {key: one.steps[0] for key, one in series.items()}
    finite = {key: one for key, one in series.items() if all(map(math.isfinite, one.numbers))}
    as_rows = _pack(run_id, finite) | (series.keys() - finite.keys())
    if as_rows:
        _unpack(run_id, ((each.key, each.step) for each in rows if each.key in as_rows))
        _insert_logged(run_id, [each for each in rows if each.key in as_rows])
    condensing.written(run_id, first, len({each.step for each in rows}))


def _insert_logged(run_id: int, rows: Sequence[LoggedPoint]) -> None:
    finite = [math.isfinite(each.value) for each in rows]
    given: dict[str, Any] = {
        "run": run_id,
        "keys": [each.key for each in rows],
        "steps": [each.step for each in rows],
        "times": [each.time for each in rows],
        "values": [each.value if whole else None for each, whole in zip(rows, finite, strict=True)],
        "others": ["" if whole else _word(each.value) for each, whole in zip(rows, finite, strict=True)],
    }
    with connection.cursor() as cursor:
        cursor.execute(LOGGED, given)


def _pack(run_id: int, series: Mapping[str, Packable]) -> set[str]:
    """Packs the keys all of whose steps come after all stored ones. Returns the other keys."""
    if not series:
        return set()
    keys, left = list(series), set[str]()
    appended, begun = PackedBatch(), PackedBatch()
    with connection.cursor() as cursor:
        for place, stretch, count, *ends in prepared.rows(ENDS, {"run": run_id, "keys": keys}):
            key, one = keys[place], series[keys[place]]
            if one.steps[0] <= max((end for end in ends if end is not None), default=-1):
                left.add(key)
            elif stretch is not None and count + len(one.steps) <= MOST:
                appended.add(stretch, one, 0)
            else:
                for start in range(0, len(one.steps), MOST):
                    begun.add(key, one, start)
        if appended.owners:
            cursor.execute(APPENDED, {"ids": appended.owners, **appended.given()})
        if begun.owners:
            cursor.execute(BEGUN, {"run": run_id, "keys": begun.owners, **begun.given()})
    return left


class PackedBatch:
    """Stretches, or ends of them, for one statement. `owners`: what each belongs to, a key or an id."""

    def __init__(self) -> None:
        self.owners: list[Any] = []
        self._grids: dict[tuple[tuple[int, ...], tuple[datetime, ...]], int] = {}
        self._of: list[int] = []
        self._numbers: list[str] = []

    def add(self, owner: Any, one: Packable, start: int) -> None:
        end = start + MOST
        grid = (tuple(one.steps[start:end]), tuple(one.times[start:end]))
        self.owners.append(owner)
        self._of.append(self._grids.setdefault(grid, len(self._grids)))
        self._numbers.append(_array(map(repr, map(float, one.numbers[start:end]))))

    def given(self) -> dict[str, Any]:
        return {
            "steps": [_array(map(str, steps)) for steps, _ in self._grids],
            "times": [_array(time.isoformat() for time in times) for _, times in self._grids],
            "grids": self._of,
            "numbers": self._numbers,
        }


def _array(texts: Iterable[str]) -> str:
    return f"{{{','.join(texts)}}}"


def _unpack(run_id: int, places: Iterable[tuple[str, int]]) -> None:
    keys, wanted = zip(*places, strict=True)
    with connection.cursor() as cursor:
        cursor.execute(UNPACKED, {"run": run_id, "keys": list(keys), "steps": list(wanted)})


def _word(value: float) -> str:
    return "NaN" if math.isnan(value) else "Infinity" if value > 0 else "-Infinity"
