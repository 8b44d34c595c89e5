"""Reads of custom charts and pins."""

from typing import Any

from django.db.models import QuerySet

from webapp.accounts.models import Membership

from ..models import CustomChart, PinnedCharts, Run

SHOWN = ("id", "title", "expressions", "lowest", "highest")


def charts(workspace_id: int, recipe: str) -> "QuerySet[CustomChart]":
    """The charts of a recipe, in their order, without those that were removed."""
    there = CustomChart.objects.filter(workspace_id=workspace_id, recipe=recipe, removed_at=None)
    return there.order_by("place", "pk")


def shown(membership: Membership, run: Run) -> dict[str, Any]:
    """`{"items": [{"id", "title", "expressions", "lowest", "highest"}], "pinned"}`: what this person sees on the page of the run."""
    rows = charts(membership.workspace_id, run.recipe).values(*SHOWN)
    return {"items": list(rows), "pinned": pinned(membership, run)}


def pinned(membership: Membership, run: Run) -> list[str]:
    mine = PinnedCharts.objects.filter(
        workspace_id=membership.workspace_id, user=membership.user, recipe=run.recipe
    ).first()
    return list(mine.charts) if mine else []
