"""The time limit of a run, for all its attempts together. At the limit it stops as if somebody had stopped it: with a checkpoint of
the steps that are done."""

from datetime import datetime, timedelta
from typing import Any

from django.db import transaction
from django.db.models import DateTimeField, DurationField, ExpressionWrapper, F, Value
from django.db.models.functions import Coalesce, Greatest

from webapp.accounts.models import Membership
from webapp.core.auditing import audit
from webapp.core.problems import Conflict, Invalid

from ..live import broadcasts
from ..models import OVER, LoggedElsewhere, Run
from ..serializers import under_way
from .deleted_runs import unless_deleted

NONE = timedelta()
LEAST, MOST = timedelta(minutes=1), timedelta(days=3650)


def clock(to: str, now: datetime) -> dict[str, Any]:
    """The fields of time that a move to state `to` changes: time counts while a process runs, not while the run waits in the line."""
    moment = Value(now, DateTimeField())
    if to == Run.State.RUNNING:
        return {"begun_at": Coalesce("begun_at", moment)}
    if to in OVER or to in (Run.State.QUEUED, Run.State.PAUSED):
        lasted = ExpressionWrapper(moment - F("begun_at"), output_field=DurationField())
        zero = Value(NONE, DurationField())  # before it ran, and where the clock went back
        return {"under_way": F("under_way") + Greatest(Coalesce(lasted, zero), zero), "begun_at": None}
    return {}


def is_used_up(run: Run, now: datetime) -> bool:
    return run.time_limit is not None and under_way(run, now) >= run.time_limit


def check(run: Run, now: datetime) -> None:
    """Raises Conflict if the run would be stopped again at once."""
    if is_used_up(run, now):
        raise Conflict("Its time limit is used up. Raise or lift it first, under Time limit.", "time_limit")


@unless_deleted
def change(membership: Membership, run: Run, limit: timedelta | None, now: datetime) -> Run:
    """Sets a new limit, or none. Raises Invalid at `seconds` if that much is used already; the same again changes nothing."""
    if run.is_logged:
        raise LoggedElsewhere
    with transaction.atomic():
        held = Run.objects.select_for_update(no_key=True).get(pk=run.pk)
        if limit is not None and not LEAST <= limit <= MOST:
            raise Invalid("The time limit cannot be set.", {"seconds": "must be between a minute and ten years"})
        if limit is not None and limit <= (used := under_way(held, now)):
            told = f"must be more than the {used.total_seconds() / 3600:.2f} h that it has run"
            raise Invalid("The run has used that much already.", {"seconds": told})
        if held.time_limit != limit:
            Run.objects.filter(pk=run.pk).update(time_limit=limit)
            seconds = None if limit is None else limit.total_seconds()
            audit.record(membership, membership.user, "run.time_limit", run, seconds=seconds)
    run.refresh_from_db(from_queryset=Run.objects.with_names())
    broadcasts.run_changed(run)
    return run


def limit_text(limit: timedelta) -> str:
    """2 h, 1 h 30 min, 20 min."""
    hours, minutes = divmod(round(limit.total_seconds() / 60), 60)
    return " ".join(part for part in (f"{hours} h" * bool(hours), f"{minutes} min" * bool(minutes)) if part) or "0 min"
