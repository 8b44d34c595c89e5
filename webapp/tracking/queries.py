"""Reads of logged runs: the rows, and the last value of each of their metrics."""

from collections.abc import Collection
from dataclasses import dataclass
from datetime import datetime

from django.db import connection
from django.db.models import QuerySet

from webapp.experiments.models import MetricPoint

from .models import LoggedRun


@dataclass(frozen=True)
class LoggedPoint:
    """A value of one metric; it may be NaN or infinite."""

    key: str
    step: int
    time: datetime
    value: float


def logged_runs(workspace_id: int) -> "QuerySet[LoggedRun]":
    rows = LoggedRun.objects.filter(run__experiment__workspace_id=workspace_id)
    return rows.select_related("run__experiment__workspace", "run__created_by")


# For each run a loose scan of the index (run, key, step): from key to key, and of each the last step.
LATEST = """
SELECT wanted.run_id, latest.key, latest.step, latest.time, latest.value, latest.not_finite
FROM unnest(%(runs)s::bigint[]) AS wanted(run_id)
CROSS JOIN LATERAL (
    WITH RECURSIVE keys AS (
        (SELECT key FROM experiments_metricpoint WHERE run_id = wanted.run_id ORDER BY key LIMIT 1)
        UNION ALL
        SELECT (
            SELECT key FROM experiments_metricpoint WHERE run_id = wanted.run_id AND key > keys.key ORDER BY key LIMIT 1
        ) FROM keys WHERE keys.key IS NOT NULL
    )
    SELECT keys.key, newest.* FROM keys CROSS JOIN LATERAL (
        SELECT step, time, value, not_finite FROM experiments_metricpoint
        WHERE run_id = wanted.run_id AND key = keys.key ORDER BY step DESC LIMIT 1
    ) AS newest
) AS latest
WHERE latest.value IS NOT NULL OR latest.not_finite <> ''
ORDER BY wanted.run_id, latest.key
"""


def latest(run_ids: Collection[int]) -> dict[int, list[LoggedPoint]]:
    """Run id -> the point of the last step of each key, by key. One statement, however many runs."""
    found: dict[int, list[LoggedPoint]] = {run_id: [] for run_id in run_ids}
    if found:
        with connection.cursor() as cursor:
            cursor.execute(LATEST, {"runs": list(found)})
            for run_id, key, step, time, value, not_finite in cursor.fetchall():
                found[run_id].append(LoggedPoint(key, step, time, float(not_finite) if value is None else value))
    return found


def history(run_id: int, key: str, after_step: int | None, limit: int) -> list[LoggedPoint]:
    """The points of one metric in the order of steps."""
    rows = MetricPoint.objects.filter(run_id=run_id, key=key).order_by("step")
    if after_step is not None:
        rows = rows.filter(step__gt=after_step)
    rows = rows.exclude(value=None, not_finite="")
    return [
        LoggedPoint(key, row.step, row.time, float(row.not_finite) if row.value is None else row.value)
        for row in rows[:limit]
    ]
