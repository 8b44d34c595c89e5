"""The line of runs and jobs: how many may be under way at once, and what the others wait for.

What has a place was let in under the lock of the line, so that the number is kept however many workers try at once. What
has to wait has no time for another try (`next_try_at`): the end of another gives it one.
"""

from collections.abc import Callable

from django.db import transaction
from django.db.models import QuerySet
from django.utils import timezone

from webapp.core import locks
from webapp.core.tasks import enqueue
from webapp.weights import line as weights_line
from webapp.weights import states as weights_states
from webapp.weights.models import WeightsJob

from ..live import broadcasts
from ..models import Run
from . import claimants, line_words, resources
from .claimants import Claimant, launched
from .line_order import Gpus, Why, walk

__all__ = ["RUNNING", "admit", "launched", "let_in", "lock", "tell"]

RUNNING = resources.RUNNING


def lock() -> None:
    """Until the transaction ends, nobody else lets a run in."""
    locks.until_commit(locks.Work.START_RUN)


def admit(claimant: Claimant, take: Callable[[], bool]) -> bool:
    """Whether a place is free for one that waits, those before it in the line served first, and `take` has given it to it. Otherwise
    it is noted what it waits for.

    A run that has to wait for another of its workspace, whose limit is reached, keeps nobody else waiting.
    """
    with transaction.atomic():
        lock()
        taken = False
        if any(each.key == claimant.key for each in _next()):
            taken = take()
        else:
            _row(claimant).update(next_try_at=None)
        tell()
    return taken


def pass_over(run: Run) -> None:
    """Lets a run wait although a place is free: the next `let_in` gives it another try."""
    _row(claimants.of_run(run)).update(next_try_at=None)


def let_in() -> None:
    """Gives the first of the line another try, as many as there are free places. Called if one ends, and by upkeep."""
    with transaction.atomic():
        lock()
        for each in _next():
            if _row(each).filter(next_try_at=None).update(next_try_at=timezone.now()):
                enqueue(f"workers.{'runs' if each.run else 'weights'}.launch", each.row.pk)
        tell()


weights_line.kept_by(weights_line.Keeper(lambda job, take: admit(claimants.of_job(job), take), let_in, lock))


def _row(claimant: Claimant) -> QuerySet[Run] | QuerySet[WeightsJob]:
    """For an UPDATE while it waits."""
    rows = launched([Run.State.QUEUED]) if claimant.run else weights_line.waiting()
    return rows.filter(pk=claimant.row.pk)


def _next() -> list[Claimant]:
    """All that have a place now, the first of the line first."""
    found: list[Claimant] = []
    for each, why in walk(Gpus()):
        if why == Why.FULL:
            break  # nobody overtakes: a run that needs many would never get them
        if why is None:
            found.append(each)
    return found


def tell() -> None:
    """Brings the reasons of those that wait up to date."""
    for each in line_words.standing(line_words.Holders(timezone.now()), Gpus()):
        claimant = each.claimant
        if not each.reason or claimant.row.next_try_at is not None or each.reason == claimant.reason:
            continue
        if claimant.job:
            if weights_line.waiting().filter(pk=claimant.job.pk).update(problem=each.reason):
                weights_states.tell(claimant.job)
        elif launched([Run.State.QUEUED]).filter(id=claimant.row.pk).update(state_reason=each.reason):
            broadcasts.run_changed(Run.objects.with_names().get(id=claimant.row.pk))
