"""The workers' part of repeated runs: they launch what is due.

A round may come twice, at once, or not at all. A time is decided under the lock of its repeat, in the transaction that moves the repeat to
its next time, and has one row: so no time is launched twice. After some time without workers one run is launched, for the newest time; the
others are counted as missed.
"""

import logging
from datetime import datetime

from django.db import transaction
from django.db.models import QuerySet
from django.utils import timezone

from trainer.config import ConfigInvalid
from webapp.accounts.models import Membership
from webapp.core.auditing import audit
from webapp.core.problems import Problem
from webapp.webhooks.services import announce

from .. import access
from ..launch import named_rows, refusals
from ..launch import services as launching
from ..lifecycle import utc_times
from ..lifecycle.limits import RunLimits
from ..lifecycle.states import facts
from ..models import ACTIVE, RepeatTime, Run, RunRepeat
from . import services

LONGEST_NAME = 120
KEPT = 100  # times of a repeat whose rows stay
logger = logging.getLogger(__name__)
RepeatFate = RepeatTime.RepeatFate
GONE = "The person who asked for it is no longer allowed to launch anything here. It is paused"


def watch() -> None:
    """Launches what is due."""
    for pk in list(_due(timezone.now()).order_by("next_at", "pk").values_list("pk", flat=True)):
        try:
            take_up(pk, timezone.now())
        except Exception:  # one must not keep the others waiting
            logger.exception("repeat %s could not be taken up; the next round tries again", pk)


def take_up(pk: int, now: datetime) -> None:
    """Decides the time of this repeat that has come, if one has."""
    with transaction.atomic():
        row = _due(now).select_for_update(of=("self",)).filter(pk=pk).first()
        if row is None or row.next_at is None:
            return
        come = services.rhythm(row).come(row.next_at, now)
        row.next_at = services.following(row, come.following)
        if RepeatTime.objects.filter(
            repeat=row, due=come.newest
        ).exists():  # a clock that was set back: it was decided before
            row.save(update_fields=["next_at"])
            return
        time = RepeatTime(repeat=row, due=come.newest, missed=come.missed)
        _decide(row, time)
        time.save()
        row.save(update_fields=["next_at", "paused"])
        _forget(row)
        if time.outcome == RepeatFate.REFUSED:
            _tell_refused(row, time)


def _forget(row: RunRepeat) -> None:
    """Deletes the rows of old times. A run that is not over keeps its row, because the next time is left out for it."""
    oldest = RepeatTime.objects.filter(repeat=row).order_by("-due").values_list("due", flat=True)[KEPT - 1 : KEPT]
    for due in oldest:
        RepeatTime.objects.filter(repeat=row, due__lt=due).exclude(run__state__in=ACTIVE).delete()


def _tell_refused(row: RunRepeat, time: RepeatTime) -> None:
    run = Run.objects.with_names().get(pk=row.run_id)
    told = {"repeat": row.pk, "due": time.due.isoformat(), "reason": time.reason}
    audit.record(row.workspace, None, "run.repeat_refused", run, **told)
    before = RepeatTime.objects.filter(repeat=row, due__lt=time.due).order_by("-due").first()
    if before is None or before.outcome != RepeatFate.REFUSED:
        announce(row.workspace_id, "run.repeat_refused", facts(run) | told)


def _due(now: datetime) -> QuerySet[RunRepeat]:
    return RunRepeat.objects.filter(paused=False, next_at__lte=now)


def _decide(row: RunRepeat, time: RepeatTime) -> None:
    """Launches the run, or notes why not."""
    earlier = Run.objects.filter(repeated_by__repeat=row, state__in=ACTIVE).first()
    if earlier is not None:
        time.outcome, time.reason = RepeatFate.LEFT_OUT, f"{earlier} is not over"
        return
    membership = access.launcher(row.workspace_id, row.created_by_id)
    if membership is None:
        time.outcome, time.reason, row.paused = RepeatFate.REFUSED, GONE, True
        return
    try:
        with transaction.atomic():  # what a refusal has written of it is undone
            time.run, time.outcome = _launch(membership, row, time.due), RepeatFate.LAUNCHED
    except (ConfigInvalid, Problem) as error:
        time.outcome, time.reason = RepeatFate.REFUSED, refusals.refusal_message(error)


def _launch(membership: Membership, row: RunRepeat, due: datetime) -> Run:
    run = Run.objects.with_names().get(pk=row.run_id)
    when = f" {utc_times.field(due).replace('T', ' ')}"
    return launching.launch(
        membership,
        recipe=run.recipe,
        config=named_rows.config_today(run),
        dataset=services.data_of(run, row.newest_data),
        experiment=run.experiment.name,
        name=f"{str(run)[: LONGEST_NAME - len(when)]}{when}",
        forked_from=run,
        retries=run.retries,
        limits=RunLimits.of_run(run),
    )
