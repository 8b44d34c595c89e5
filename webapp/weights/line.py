"""The line in which a job waits for its place. Runs are in it too, so the app of runs keeps it and registers itself.

A `Turn` says since when a job counts as asked for, and how urgent it is.
"""

from collections.abc import Callable
from dataclasses import dataclass
from datetime import datetime

from django.db.models import Q, QuerySet

from webapp.core.background.priorities import Priority

from .models import ALIVE, WeightsJob

State = WeightsJob.State


@dataclass(frozen=True)
class Turn:
    """`since` None: it counts as asked for now."""

    since: datetime | None = None
    priority: int = Priority.NORMAL


NOW = Turn()


@dataclass(frozen=True)
class Keeper:
    """`admit(job, take)`: whether the queued job has a place now and `take`, called under the lock of the line, has moved it there;
    otherwise it is noted why it waits. `let_in` gives places that came free to the first of the line, once all is committed. `lock`
    keeps everybody else from changing the line until the transaction ends; it comes before the lock of any job."""

    admit: Callable[[WeightsJob, Callable[[], bool]], bool]
    let_in: Callable[[], None]
    lock: Callable[[], None]


_keepers: list[Keeper] = []


def kept_by(keeper: Keeper) -> None:
    _keepers[:] = [keeper]


def admit(job: WeightsJob, take: Callable[[], bool]) -> bool:
    return _keepers[0].admit(job, take)


def let_in() -> None:
    _keepers[0].let_in()


def lock() -> None:
    _keepers[0].lock()


def waiting() -> QuerySet[WeightsJob]:
    """The jobs that wait for a place. One without `asked_at` has no items yet, and waits for nothing."""
    return WeightsJob.objects.filter(state=State.QUEUED, asked_at__isnull=False)


def placed() -> QuerySet[WeightsJob]:
    """The jobs that have a place: Ray has them, or is about to."""
    return WeightsJob.objects.filter(state__in=ALIVE)


def is_waiting(job: WeightsJob) -> bool:
    return job.state == State.QUEUED and job.asked_at is not None


def advance(job: WeightsJob, turn: Turn) -> bool:
    """Gives the job the better turn of two, if another request for it is more urgent or older. Returns whether that changed anything."""
    urgent = waiting().filter(pk=job.pk, priority__lt=turn.priority).update(priority=turn.priority)
    late = Q(pk=job.pk, asked_at__gt=turn.since) if turn.since else Q(pk=None)
    return bool(urgent) | bool(waiting().filter(late).update(asked_at=turn.since))
