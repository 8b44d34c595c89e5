"""Reads of logged runs: the rows, and the last value of each of their metrics."""

from collections.abc import Collection

from django.db.models import QuerySet

from webapp.experiments.metrics import points
from webapp.experiments.metrics.points import LoggedPoint

from .models import LoggedRun


def logged_runs(workspace_id: int) -> "QuerySet[LoggedRun]":
    rows = LoggedRun.objects.filter(run__experiment__workspace_id=workspace_id)
    return rows.select_related("run__experiment__workspace", "run__created_by")


def latest(run_ids: Collection[int]) -> dict[int, list[LoggedPoint]]:
    """Run id -> the point of the last step of each key that has a number there, by key. One statement, however many runs."""
    return {
        run_id: [LoggedPoint(each.key, each.step, each.time, each.value) for each in found if each.value is not None]
        for run_id, found in points.newest(run_ids).items()
    }
