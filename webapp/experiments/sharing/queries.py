"""Reads of the links of a workspace, for those who may share."""

from collections.abc import Sequence

from django.db.models import Count, QuerySet

from ..models import Run, ShareLink
from . import kinds


def links(workspace_id: int) -> "QuerySet[ShareLink]":
    """The links that nobody has revoked, with `run_count`, the number of their runs that are left."""
    rows = ShareLink.objects.filter(workspace_id=workspace_id, withdrawn_at=None).select_related("created_by")
    return rows.annotate(run_count=Count("runs", distinct=True))


def listed(links: Sequence[ShareLink]) -> dict[int, kinds.ListedLink]:
    """The content of each link, by the id of the link. Each kind of link takes one statement."""
    found: dict[int, kinds.ListedLink] = {}
    for name, kind in kinds.KINDS.items():
        found |= kind.listed([link for link in links if link.shows == name])
    return found


def experiments(runs: list[Run]) -> list[str]:
    """The names of the runs' experiments, each once."""
    return list(dict.fromkeys(run.experiment.name for run in runs))
