"""The line of runs and jobs: how many may be under way at once, and for what the others wait.

Places are given under the lock of the line, so the number holds for any number of workers. A run that has to wait has no time for another
try (`next_try_at`): the end of another one gives it one.
"""

from collections.abc import Callable

from django.db import transaction
from django.db.models import QuerySet
from django.utils import timezone

from webapp.core.database import locks
from webapp.core.tasks import enqueue
from webapp.weights import line as weights_line
from webapp.weights import states as weights_states
from webapp.weights.models import WeightsJob

from ..live import broadcasts
from ..models import Run
from . import claimants, resources, waiting_reasons
from .claimants import Claimant, launched
from .line_order import Free, Why, walk

__all__ = ["RUNNING", "admit", "launched", "let_in", "lock", "update_waiting_reasons"]

RUNNING = resources.RUNNING


def lock() -> None:
    """Locks the line until the transaction ends: nobody else lets a run in."""
    locks.until_commit(locks.Work.START_RUN)


def admit(claimant: Claimant, take: Callable[[], bool]) -> bool:
    """Whether a place is free for a waiting run, after those before it in the line, and `take` has taken it. Otherwise the reason for
    waiting is noted.

    A run that has to wait for another of its workspace, whose limit is reached, keeps nobody else waiting.
    """
    with transaction.atomic():
        lock()
        taken = False
        if any(each.key == claimant.key for each in _next()):
            taken = take()
        else:
            _row(claimant).update(next_try_at=None)
        update_waiting_reasons()
    return taken


def pass_over(run: Run) -> None:
    """Lets a run wait although a place is free: the next `let_in` gives it another try."""
    _row(claimants.of_run(run)).update(next_try_at=None)


def let_in() -> None:
    """Gives the first of the line another try, as many as there are free places. Called when a run or job ends, and by upkeep."""
    with transaction.atomic():
        lock()
        for each in _next():
            if _row(each).filter(next_try_at=None).update(next_try_at=timezone.now()):
                enqueue(f"workers.{'runs' if each.run else 'weights'}.launch", each.row.pk)
        update_waiting_reasons()


weights_line.kept_by(weights_line.Keeper(lambda job, take: admit(claimants.of_job(job), take), let_in, lock))


def _row(claimant: Claimant) -> QuerySet[Run] | QuerySet[WeightsJob]:
    """The row of a waiting claimant, for an UPDATE."""
    rows = launched([Run.State.QUEUED]) if claimant.run else weights_line.waiting()
    return rows.filter(pk=claimant.row.pk)


def _next() -> list[Claimant]:
    """All that have a place now, in the order of the line."""
    found: list[Claimant] = []
    for each, why in walk(Free()):
        if why == Why.FULL:
            break  # nobody overtakes: a run that needs many would never get them
        if why is None:
            found.append(each)
    return found


def update_waiting_reasons() -> None:
    """Brings the reasons of those that wait up to date."""
    for each in waiting_reasons.waiting_runs(waiting_reasons.Holders(timezone.now()), Free()):
        claimant = each.claimant
        if not each.reason or claimant.row.next_try_at is not None or each.reason == claimant.reason:
            continue
        if claimant.job:
            if weights_line.waiting().filter(pk=claimant.job.pk).update(problem=each.reason):
                weights_states.broadcast_job(claimant.job)
        elif launched([Run.State.QUEUED]).filter(id=claimant.row.pk).update(state_reason=each.reason):
            broadcasts.run_changed(Run.objects.with_names().get(id=claimant.row.pk))
