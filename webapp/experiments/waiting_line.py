"""The line of runs: how many may run at once, and what the others wait for.

A run is let in by whoever holds the lock of the line, so that the number is kept however many workers try at once. A run
that has to wait has no time for another try (`next_try_at`): the end of another run gives it one.
"""

from django.conf import settings
from django.db import transaction
from django.utils import timezone

from webapp.core import locks
from webapp.core.tasks import enqueue

from . import broadcasts
from .models import Run, RunQuerySet

RUNNING = (Run.State.STARTING, Run.State.RUNNING, Run.State.PAUSED, Run.State.STOPPING)
NAMED = 3  # runs that a reason names
TOLD = 100  # waiting runs whose reason is kept up to date


def lock() -> None:
    """Until the transaction ends, nobody else lets a run in."""
    locks.until_commit(locks.Work.START_RUN)


def may_start(run: Run) -> bool:
    """Whether a place is free for this queued run, those before it in the line served first. Under the lock."""
    most = settings.MAX_RUNNING_RUNS
    if most is None:
        return True
    line = list(_queued().values_list("id", flat=True))
    before = line.index(run.id) if run.id in line else len(line)
    return Run.objects.filter(state__in=RUNNING).count() + before < most


def wait(run: Run) -> None:
    """Notes that the run has no place yet, and for which runs it waits. Under the lock."""
    _queued().filter(id=run.id).update(next_try_at=None)
    tell()


def let_in() -> None:
    """Gives the first of the line another try, as many as there are free places. Called where a run ends, and by upkeep."""
    most = settings.MAX_RUNNING_RUNS
    with transaction.atomic():
        lock()
        waiting = list(_queued().filter(next_try_at=None).values_list("id", flat=True))
        trying = _queued().filter(next_try_at__isnull=False).count()
        free = len(waiting) if most is None else most - Run.objects.filter(state__in=RUNNING).count() - trying
        for run_id in waiting[: max(free, 0)]:
            if _queued().filter(id=run_id, next_try_at=None).update(next_try_at=timezone.now()):
                enqueue("workers.runs.launch", run_id)
        tell()


def tell() -> None:
    """Brings the reasons of the waiting runs up to date."""
    running = list(Run.objects.with_names().filter(state__in=RUNNING).order_by("id")[: NAMED + 1])
    for before, run in enumerate(_queued().with_names()[:TOLD]):
        if run.next_try_at is not None:
            continue
        reason = _reason(run, running, before)
        if reason != run.state_reason and _queued().filter(id=run.id).update(state_reason=reason):
            run.state_reason = reason
            broadcasts.run_changed(run)


def _reason(run: Run, running: list[Run], before: int) -> str:
    """Names what it waits for; of another workspace's runs only that they are there."""
    mine = [other for other in running if other.experiment.workspace_id == run.experiment.workspace_id][:NAMED]
    names = [f"{other} of {other.experiment.name}" for other in mine]
    if len(running) > len(names):
        names.append("runs of others" if len(running) - len(names) > 1 else "another run")
    line = f", and {before} more {'is' if before == 1 else 'are'} before it in the line" if before else ""
    most = settings.MAX_RUNNING_RUNS
    return f"Waits for {', '.join(names) or 'its turn'}{line}: {most} may run at once (MAX_RUNNING_RUNS)"


def _queued() -> RunQuerySet:
    """In the order in which they were asked for."""
    return Run.objects.filter(state=Run.State.QUEUED).order_by("attempt_at", "id")
