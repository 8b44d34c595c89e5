"""Reads of the links of a workspace, for those who may share."""

from django.db.models import Count, QuerySet

from ..models import Run, ShareLink


def links(workspace_id: int) -> "QuerySet[ShareLink]":
    """The links that nobody has withdrawn, with `run_count`, the number of their runs that are left."""
    rows = ShareLink.objects.filter(workspace_id=workspace_id, withdrawn_at=None).select_related("created_by")
    return rows.annotate(run_count=Count("runs", distinct=True))


def run_ids(link: ShareLink) -> list[int]:
    return list(link.runs.order_by("place").values_list("run_id", flat=True))


def experiments(runs: list[Run]) -> list[str]:
    """The names of the runs' experiments, each once."""
    return list(dict.fromkeys(run.experiment.name for run in runs))
