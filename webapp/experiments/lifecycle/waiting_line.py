"""The line of runs: how many may run at once, and what the others wait for.

A run is let in by whoever holds the lock of the line, so that the number is kept however many workers try at once. A run
that has to wait has no time for another try (`next_try_at`): the end of another run gives it one.
"""

from django.db import transaction
from django.utils import timezone

from webapp.core import locks
from webapp.core.tasks import enqueue

from ..live import broadcasts
from ..models import Run
from . import line_words, resources
from .line_order import Gpus, Why, launched, queued, walk

__all__ = ["RUNNING", "launched", "let_in", "lock", "may_start", "tell", "wait"]

RUNNING = resources.RUNNING


def lock() -> None:
    """Until the transaction ends, nobody else lets a run in."""
    locks.until_commit(locks.Work.START_RUN)


def may_start(run: Run) -> bool:
    """Whether a place is free for this queued run, those before it in the line served first. Under the lock.

    Whoever has to wait for another run of their workspace, whose limit is reached, keeps nobody else waiting.
    """
    return run.id in _next()


def wait(run: Run) -> None:
    """Notes that the run has no place yet, and for which runs it waits. Under the lock."""
    queued().filter(id=run.id).update(next_try_at=None)
    tell()


def let_in() -> None:
    """Gives the first of the line another try, as many as there are free places. Called where a run ends, and by upkeep."""
    with transaction.atomic():
        lock()
        for run_id in _next():
            if queued().filter(id=run_id, next_try_at=None).update(next_try_at=timezone.now()):
                enqueue("workers.runs.launch", run_id)
        tell()


def _next() -> list[int]:
    """The queued runs that have a place now, the first of the line first."""
    found: list[int] = []
    for run, why in walk(Gpus()):
        if why in (Why.FULL, Why.GPUS):
            break  # nobody overtakes: a run that needs many would never get them
        if why is None:
            found.append(run.id)
    return found


def tell() -> None:
    """Brings the reasons of the waiting runs up to date."""
    for each in line_words.standing(line_words.Holders(timezone.now()), Gpus()):
        run = each.run
        if not each.reason or run.next_try_at is not None or each.reason == run.state_reason:
            continue
        if queued().filter(id=run.id).update(state_reason=each.reason):
            broadcasts.run_changed(Run.objects.with_names().get(id=run.id))
