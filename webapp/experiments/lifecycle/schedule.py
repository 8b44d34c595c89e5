"""The earliest start of a run. Until then it is in the line, keeps nobody waiting, and takes no place."""

from datetime import datetime, timedelta

from django.db import transaction
from django.utils import timezone

from webapp.accounts.models import Membership
from webapp.core.auditing import audit
from webapp.core.problems import Conflict, Invalid

from ..live import broadcasts
from ..models import ALIVE, LoggedElsewhere, Run
from . import utc_times, waiting_line
from .deleted_runs import unless_deleted

FIELD = "not_before"
SLACK = timedelta(minutes=1)  # between the clocks of client and server
MOST = timedelta(days=366)


def problem(moment: datetime | None, now: datetime) -> str:
    """The problem with a time to start; empty if there is none."""
    if moment is None:
        return ""
    if moment < now - SLACK:
        return f"has passed: it is {utc_times.utc_text(now, now)}"
    return "must be within a year" if moment - now > MOST else ""


def check(moment: datetime | None) -> None:
    """Raises Invalid at `not_before`."""
    if told := problem(moment, timezone.now()):
        raise Invalid("The run cannot start at that time.", {FIELD: told})


@unless_deleted
def change(membership: Membership, run: Run, moment: datetime | None) -> Run:
    """Sets another time, or none: then it waits like any other. The same again changes nothing.

    Raises Invalid for a time that has passed, Conflict if it has started.
    """
    if run.is_logged:
        raise LoggedElsewhere
    check(moment)
    with transaction.atomic():
        waiting_line.lock()  # so that nobody lets it in meanwhile
        held = Run.objects.select_for_update(no_key=True).get(pk=run.pk)
        if held.state in ALIVE:
            raise Conflict(f"This run is {held.state}, so it has started. Pause or stop it first.", "started")
        if held.not_before != moment:
            said = "" if held.state == Run.State.QUEUED else held.state_reason  # the line says again why it waits
            Run.objects.filter(pk=run.pk).update(not_before=moment, losses=0, state_reason=said)
            at = moment and moment.isoformat()
            audit.record(membership, membership.user, "run.not_before", run, not_before=at)
            transaction.on_commit(waiting_line.let_in)
    run.refresh_from_db(from_queryset=Run.objects.with_names())
    broadcasts.run_changed(run)
    return run
