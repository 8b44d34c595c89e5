"""Reads of repeated runs."""

from typing import Any

from django.db.models import F, Prefetch, QuerySet, Window
from django.db.models.functions import RowNumber
from django.http import Http404

from webapp.accounts.models import Membership

from .. import access
from ..models import RepeatTime, RunRepeat
from . import services

LAST = 5  # times that are shown of each


def repeats(membership: Membership) -> QuerySet[RunRepeat]:
    """The repeats of the workspace with their last times, the newest one first."""
    back = Window(RowNumber(), partition_by="repeat", order_by=F("due").desc())
    times = RepeatTime.objects.annotate(back=back).filter(back__lte=LAST)
    times = times.select_related("run__experiment").order_by("-due")
    rows = RunRepeat.objects.filter(workspace_id=access.may_read(membership).workspace_id)
    return (
        rows.select_related("run__experiment", "created_by").prefetch_related(Prefetch("times", times)).order_by("-pk")
    )


def repeat_write(membership: Membership, repeat_id: int) -> RunRepeat:
    found = repeats(access.may_write(membership)).filter(pk=repeat_id).first()
    if found is None:
        raise Http404("no such repeat")
    return found


def state(row: RunRepeat) -> str:
    """waiting, paused or ended"""
    if row.next_at is None:
        return "ended"
    return "paused" if row.paused else "waiting"


def repeat_json(row: RunRepeat) -> dict[str, Any]:
    """A repeat as the API gives it. Needs `repeats`."""
    return {
        "id": row.pk,
        "run": row.run_id,
        "rhythm": services.rhythm(row).words,
        "every_hours": row.every_hours,
        "at": row.at and f"{row.at:%H:%M}",
        "weekday": row.weekday,
        "zone": row.zone,
        "ends_at": row.ends_at,
        "newest_data": row.newest_data,
        "state": state(row),
        "next_at": None if row.paused else row.next_at,
        "times": [
            {name: getattr(time, name) for name in ("due", "outcome", "reason", "missed")} | {"run": time.run_id}
            for time in row.times.all()
        ],
        "created_at": row.created_at,
    }
