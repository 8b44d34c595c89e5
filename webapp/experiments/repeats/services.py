"""Runs that are launched again by the clock: added, paused, resumed, removed. Each is launched in the name of the person who added it."""

from collections.abc import Iterator
from dataclasses import asdict, dataclass, field
from datetime import datetime, timedelta
from zoneinfo import available_timezones

from django.db import IntegrityError, transaction
from django.db.models import QuerySet
from django.http import Http404
from django.utils import timezone

from webapp.accounts.models import Membership, Workspace
from webapp.core.auditing import audit
from webapp.core.problems import Conflict, Invalid
from webapp.core.requests import idempotency

from ..launch import checks, named_rows
from ..models import Run, RunRepeat
from .rhythm import Rhythm

MOST = 100  # repeats of a workspace
LONGEST_H = 24 * 366
FURTHEST = timedelta(days=366 * 10)


@dataclass(frozen=True)
class RepeatAsked:
    """The request for a repeat. `ends_at`: no launch after it. `newest_data`: each run trains on the newest version of the dataset."""

    rhythm: Rhythm = field(default_factory=Rhythm)
    ends_at: datetime | None = None
    newest_data: bool = False

    def problems(self, now: datetime) -> Iterator[tuple[str, str]]:
        """(field, what is wrong with it)"""
        given = self.rhythm
        if given.zone not in available_timezones():
            yield "zone", f"there is no time zone {given.zone!r}; names are like Europe/Vienna"
        if (given.every_hours is None) == (given.at is None):
            yield "every_hours", "give either a number of hours or a time of the day"
        elif given.every_hours is not None and not 1 <= given.every_hours <= LONGEST_H:
            yield "every_hours", f"must be between 1 and {LONGEST_H:,}"
        if given.at is not None and given.at.tzinfo is not None:
            yield "at", "leave out the offset: it is a time by the clock of the zone"
        if given.weekday is not None and (given.at is None or not 0 <= given.weekday <= 6):
            yield "weekday", "must be between 0 (Monday) and 6, beside a time of the day"
        if self.ends_at is not None and self.ends_at <= now:
            yield "ends_at", "has passed"
        elif self.ends_at is not None and self.ends_at - now > FURTHEST:
            yield "ends_at", "must be within ten years"


def rhythm(row: RunRepeat) -> Rhythm:
    return Rhythm(row.every_hours, row.at, row.weekday, row.zone)


def add(membership: Membership, run: Run, asked: RepeatAsked, key: str | None = None) -> RunRepeat:
    """Launches the run again in this rhythm, for the first time when its first time comes. The same `key` adds one only.

    Raises Invalid at each wrong field, ConfigInvalid if the run could not be launched now, Conflict, KeyReused.
    """
    if why := run.not_here:
        raise why
    said = idempotency.key(key, run.pk, asdict(asked))
    if earlier := idempotency.row_of_key(repeats_of_person(membership), said):
        return earlier
    now = timezone.now()
    if wrong := dict(asked.problems(now)):
        raise Invalid("The run cannot be repeated in this way.", wrong)
    first = asked.rhythm.first(now)
    if asked.ends_at is not None and first > asked.ends_at:
        raise Invalid("It would never be launched.", {"ends_at": "is before the first launch"})
    checks.plan(membership, run.recipe, named_rows.config_today(run), data_of(run, asked.newest_data), None)
    try:
        with transaction.atomic():
            Workspace.objects.select_for_update(no_key=True).get(pk=membership.workspace_id)  # two at once count
            if RunRepeat.objects.filter(workspace=membership.workspace).count() >= MOST:
                raise Conflict(f"A workspace has at most {MOST} repeated runs. Delete one first.", "too_many")
            row = RunRepeat.objects.create(
                workspace=membership.workspace,
                run=run,
                **asdict(asked.rhythm),
                ends_at=asked.ends_at,
                newest_data=asked.newest_data,
                next_at=first,
                launch_key=said and said.text,
                launch_digest=said.digest if said else "",
                created_by=membership.user,
            )
            told = {"repeat": row.pk, "rhythm": asked.rhythm.words, "next_at": first.isoformat()}
            audit.record(membership, membership.user, "run.repeat", run, **told)
    except IntegrityError:  # two requests with one key at the same moment: the other one made it
        if earlier := idempotency.made_meanwhile(RunRepeat, membership.user, repeats_of_person(membership), said):
            return earlier
        raise
    return row


def data_of(run: Run, newest: bool) -> checks.DatasetChoice:
    return checks.DatasetChoice(id=run.data.dataset_id, version=None if newest else run.data.number)


def repeats_of_person(membership: Membership) -> QuerySet[RunRepeat]:
    """The repeats of this person, among which a key is unique."""
    return RunRepeat.objects.filter(created_by=membership.user, workspace=membership.workspace)


def pause(membership: Membership, row: RunRepeat) -> RunRepeat:
    """Launches nothing until it is resumed; times that come meanwhile are left out. Twice is harmless."""
    return _set(membership, row, paused=True)


def resume(membership: Membership, row: RunRepeat) -> RunRepeat:
    """Goes on with the next time. Twice is harmless."""
    return _set(membership, row, paused=False)


def _set(membership: Membership, row: RunRepeat, paused: bool) -> RunRepeat:
    with transaction.atomic():
        held = _locked(row)
        if held is None:
            raise Http404("no such repeat")  # deleted meanwhile
        if held.paused != paused:
            held.paused = paused
            if not paused and held.next_at is not None:
                held.next_at = following(held, rhythm(held).first(timezone.now()))
            held.save(update_fields=["paused", "next_at"])
            action = "run.repeat_paused" if paused else "run.repeat_resumed"
            audit.record(membership, membership.user, action, held.run, repeat=held.pk)
    return held


def following(row: RunRepeat, moment: datetime) -> datetime | None:
    """The next time, if it is not after the end."""
    return None if row.ends_at is not None and moment > row.ends_at else moment


def remove(membership: Membership, row: RunRepeat) -> None:
    """The runs that it has launched stay. Twice is harmless."""
    with transaction.atomic():
        if held := _locked(row):  # no worker adds a time meanwhile
            held.delete()
            audit.record(membership, membership.user, "run.repeat_removed", row.run, repeat=row.pk)


def _locked(row: RunRepeat) -> RunRepeat | None:
    """None if it was deleted."""
    return RunRepeat.objects.select_for_update(of=("self",)).select_related("run").filter(pk=row.pk).first()
