"""Curves and histograms of a run. Every answer is bounded, however long a run has become."""

import json
from typing import Any

from django.db import connection

from ..models import MetricPoint, Run

MAX_CURVES = 200  # keys answered at once
MAX_POINTS_PER_PAGE = 5000
MAX_HISTOGRAMS = 60


# A loose scan: jumps from key to key through the (run, key, step) index instead of reading every point.
KEYS = """
WITH RECURSIVE keys AS (
    (SELECT key FROM experiments_metricpoint WHERE run_id = %(run)s ORDER BY key LIMIT 1)
    UNION ALL
    SELECT (SELECT key FROM experiments_metricpoint WHERE run_id = %(run)s AND key > keys.key ORDER BY key LIMIT 1)
    FROM keys WHERE keys.key IS NOT NULL
)
SELECT keys.key, newest.histogram IS NOT NULL
FROM keys CROSS JOIN LATERAL (
    SELECT histogram FROM experiments_metricpoint p
    WHERE p.run_id = %(run)s AND p.key = keys.key ORDER BY step DESC LIMIT 1
) AS newest
"""

# Per key, as JSON: all points where they fit, else of every bucket of steps the lowest and the highest, so that no spike is
# smoothed away, and always the first and the last point. The database writes the text, as nobody here reads the numbers.
CURVES = """
WITH points AS (
    SELECT key, step, value, extract(epoch FROM time)::float8 AS at,
        count(*) OVER whole AS n, min(step) OVER whole AS low, max(step) OVER whole AS high
    FROM experiments_metricpoint
    WHERE run_id = %(run)s AND key = ANY(%(keys)s) AND value IS NOT NULL
    WINDOW whole AS (PARTITION BY key)
), bucketed AS (
    SELECT *, (step - low)::bigint * %(buckets)s / (high - low + 1) AS bucket FROM points
), ranked AS (
    SELECT *,
        row_number() OVER (PARTITION BY key, bucket ORDER BY value, step) AS from_low,
        row_number() OVER (PARTITION BY key, bucket ORDER BY value DESC, step) AS from_high
    FROM bucketed
)
SELECT key, json_build_object(
    'steps', json_agg(step ORDER BY step), 'values', json_agg(value ORDER BY step), 'times', json_agg(at ORDER BY step)
)::text
FROM ranked
WHERE n <= %(max_points)s OR from_low = 1 OR from_high = 1 OR step IN (low, high)
GROUP BY key ORDER BY key
"""


def metric_keys(run_id: int) -> tuple[list[str], list[str]]:
    """All keys of the run, and those of them that have histograms; both sorted."""
    with connection.cursor() as cursor:
        cursor.execute(KEYS, {"run": run_id})
        rows = cursor.fetchall()
    return [key for key, _ in rows], [key for key, histogram in rows if histogram]


def curves(run: Run, keys: list[str] | None = None, max_points: int = 600) -> str:
    """JSON: `{"curves": {key: {"steps", "values", "times"}}, "keys", "histograms", "last_seq"}`.

    At most `max_points` + 2 per curve; `times` in seconds since 1970, for the time axis.

    Without `keys`, those of all curves. `last_seq` is read first: what arrives meanwhile comes again by websocket. Text, because
    objects of so many numbers take ten times the memory, once for each viewer who comes just now.
    """
    last_seq = Run.objects.values_list("last_seq", flat=True).get(id=run.id)
    known, with_histograms = metric_keys(run.id)
    drawn = _drawn(run.id, known if keys is None else [key for key in keys if key in known], max_points)
    written = ", ".join(f"{json.dumps(key)}: {curve}" for key, curve in drawn)
    beside = {"keys": known, "histograms": with_histograms, "last_seq": last_seq}
    return f'{{"curves": {{{written}}}, {json.dumps(beside)[1:]}'


def _drawn(run_id: int, keys: list[str], max_points: int) -> list[tuple[str, str]]:
    """Key and curve, as JSON, of those of the keys that have values."""
    sizes = {"max_points": max_points, "buckets": max(max_points // 2, 1)}
    with connection.cursor() as cursor:
        cursor.execute(CURVES, {"run": run_id, "keys": keys[:MAX_CURVES], **sizes})
        found: list[tuple[str, str]] = cursor.fetchall()
    return found


def points(run: Run, key: str, after_step: int | None = None, limit: int = MAX_POINTS_PER_PAGE) -> dict[str, Any]:
    """`{"key", "points", "next"}`: every point of one metric in order of steps; `next` is the `after_step` to go on."""
    found = MetricPoint.objects.filter(run=run, key=key).order_by("step")
    if after_step is not None:
        found = found.filter(step__gt=after_step)
    rows = list(found.values("step", "value", "not_finite", "time", "histogram")[: limit + 1])
    more, rows = len(rows) > limit, rows[:limit]
    return {"key": key, "points": rows, "next": rows[-1]["step"] if more else None}


HISTOGRAMS = """
SELECT step, histogram FROM (
    SELECT step, histogram, row_number() OVER (ORDER BY step DESC) - 1 AS back, count(*) OVER () AS n
    FROM experiments_metricpoint WHERE run_id = %(run)s AND key = %(key)s AND histogram IS NOT NULL
) AS found
WHERE back %% greatest(ceil(n::numeric / %(most)s)::int, 1) = 0
ORDER BY step
"""


def histograms(run: Run, key: str, most: int = MAX_HISTOGRAMS) -> dict[str, Any]:
    """`{"key", "steps": [{"step", "edges", "counts"}]}`: at most `most`, evenly spread, the newest always among them."""
    with connection.cursor() as cursor:
        cursor.execute(HISTOGRAMS, {"run": run.id, "key": key, "most": most})
        rows = cursor.fetchall()
    return {"key": key, "steps": [{"step": step, **_json(histogram)} for step, histogram in rows]}


def _json(value: Any) -> Any:
    """Raw cursors hand jsonb out as text, because Django turns off the driver's own decoding."""
    return json.loads(value) if isinstance(value, str) else value
