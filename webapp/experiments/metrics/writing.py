"""The one writer of points. Whoever calls it holds the lock of the run.

Each write tells the levels what came again (`condensing.written`), in the same transaction.
"""

import json
import math
from collections.abc import Iterable, Sequence
from typing import Any

from django.db import connection

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


def steps(run_id: int, told: Iterable[StepMetrics]) -> None:
    """What a training process sends. No two entries may have the same step: Postgres refuses to update a row twice in one statement."""
    by_step = sorted(told, key=lambda each: each.step)
    if not by_step:
        return
    rows = [
        {"step": s.step, "time": s.time.isoformat(), "values": s.values, "histograms": s.histograms} for s in by_step
    ]
    with connection.cursor() as cursor:
        cursor.execute(STEPS, [run_id, json.dumps(rows)])
    first = {key: each.step for each in reversed(by_step) for key in each.values}
    condensing.written(run_id, first, len(by_step))


def logged(run_id: int, told: Sequence[LoggedPoint]) -> None:
    """What a program elsewhere sends: by its clock, the newest of each step stays."""
    newest: dict[tuple[str, int], LoggedPoint] = {}
    for point in told:
        place = (point.key, point.step)
        if place not in newest or newest[place].time <= point.time:
            newest[place] = point
    rows = [newest[place] for place in sorted(newest)]
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
    first = {each.key: each.step for each in reversed(rows)}
    condensing.written(run_id, first, len({each.step for each in rows}))


def _word(value: float) -> str:
    return "NaN" if math.isnan(value) else "Infinity" if value > 0 else "-Infinity"
