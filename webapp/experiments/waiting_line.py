"""The line of runs: how many may run at once, and what the others wait for.

A run is let in by whoever holds the lock of the line, so that the number is kept however many workers try at once. A run
that has to wait has no time for another try (`next_try_at`): the end of another run gives it one.
"""

from collections import Counter

from django.conf import settings
from django.db import transaction
from django.utils import timezone

from webapp.accounts import quotas
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
    """Whether a place is free for this queued run, those before it in the line served first. Under the lock.

    Whoever has to wait for another run of their workspace, whose limit is reached, keeps nobody else waiting.
    """
    return run.id in _next()


def wait(run: Run) -> None:
    """Notes that the run has no place yet, and for which runs it waits. Under the lock."""
    _queued().filter(id=run.id).update(next_try_at=None)
    tell()


def let_in() -> None:
    """Gives the first of the line another try, as many as there are free places. Called where a run ends, and by upkeep."""
    with transaction.atomic():
        lock()
        for run_id in _next():
            if _queued().filter(id=run_id, next_try_at=None).update(next_try_at=timezone.now()):
                enqueue("workers.runs.launch", run_id)
        tell()


def _next() -> list[int]:
    """The queued runs that have a place now, the first of the line first."""
    known, most = quotas.own(), settings.MAX_RUNNING_RUNS
    running = Counter(Run.objects.filter(state__in=RUNNING).values_list("experiment__workspace_id", flat=True))
    found: list[int] = []
    for run_id, workspace_id in _queued().values_list("id", "experiment__workspace_id"):
        if most is not None and running.total() >= most:
            break
        limit = quotas.of(workspace_id, known).running_runs
        if limit is None or running[workspace_id] < limit:
            running[workspace_id] += 1
            found.append(run_id)
    return found


def tell() -> None:
    """Brings the reasons of the waiting runs up to date."""
    running = list(Run.objects.with_names().filter(state__in=RUNNING).order_by("id")[: NAMED + 1])
    known = quotas.own()
    counts = Counter(Run.objects.filter(state__in=RUNNING).values_list("experiment__workspace_id", flat=True))
    for before, run in enumerate(_queued().with_names()[:TOLD]):
        if run.next_try_at is not None:
            continue
        workspace_id = run.experiment.workspace_id
        limit = quotas.of(workspace_id, known).running_runs
        full = limit is not None and counts[workspace_id] >= limit
        reason = f"Waits: {_may_run(limit)}" if full else _reason(run, running, before)
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


def _may_run(limit: int | None) -> str:
    runs = "no run of this workspace may" if limit == 0 else f"{limit} run{'s' * (limit != 1)} of this workspace may"
    return f"{runs} run at once. An administrator of this installation can change that"


def _queued() -> RunQuerySet:
    """In the order in which they were asked for."""
    return Run.objects.filter(state=Run.State.QUEUED).order_by("attempt_at", "id")
