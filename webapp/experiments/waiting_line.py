"""The line of runs: how many may run at once, and what the others wait for.

A run is let in by whoever holds the lock of the line, so that the number is kept however many workers try at once. A run
that has to wait has no time for another try (`next_try_at`): the end of another run gives it one.
"""

from collections import Counter

from django.conf import settings
from django.db import transaction
from django.utils import timezone

from trainer.contracts.counted import counted
from webapp.accounts import quotas
from webapp.core import locks
from webapp.core.tasks import enqueue

from . import broadcasts, resources
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
    known, most, gpus = quotas.own(), settings.MAX_RUNNING_RUNS, Gpus()
    running = Counter(Run.objects.filter(state__in=RUNNING).values_list("experiment__workspace_id", flat=True))
    found: list[int] = []
    for run in _queued().select_related("experiment"):
        if most is not None and running.total() >= most:
            break
        workspace_id = run.experiment.workspace_id
        limit = quotas.of(workspace_id, known).running_runs
        if (limit is not None and running[workspace_id] >= limit) or gpus.never(run):
            continue
        if not gpus.take(run):
            break  # nobody overtakes: a run that needs many would never get them
        running[workspace_id] += 1
        found.append(run.id)
    return found


class Gpus:
    """Those of the cluster that running runs have left. Where it has none, or is not known, nobody waits for any."""

    def __init__(self) -> None:
        self.there = resources.has()
        self.free = self.there
        if self.there:
            self.free -= resources.taken(Run.objects.filter(state__in=RUNNING))

    def never(self, run: Run) -> bool:
        """Whether it asks for more than there is, which the cluster had when it was launched."""
        return bool(self.there) and resources.asked(run) > self.there

    def take(self, run: Run) -> bool:
        """False where too few are free."""
        if not self.there:
            return True
        needed = resources.asked(run)
        if needed > self.free:
            return False
        self.free -= needed
        return True


def tell() -> None:
    """Brings the reasons of the waiting runs up to date."""
    running = list(Run.objects.with_names().filter(state__in=RUNNING).order_by("id")[: NAMED + 1])
    known, gpus, behind = quotas.own(), Gpus(), False
    counts = Counter(Run.objects.filter(state__in=RUNNING).values_list("experiment__workspace_id", flat=True))
    for before, run in enumerate(_queued().with_names()[:TOLD]):
        if run.next_try_at is not None:
            continue
        workspace_id = run.experiment.workspace_id
        limit = quotas.of(workspace_id, known).running_runs
        behind = behind or not gpus.take(run)
        if limit is not None and counts[workspace_id] >= limit:
            reason = f"Waits: {_may_run(limit)}"
        else:
            reason = _for_gpus(run, gpus, before) if behind else _reason(run, running, before)
        if reason != run.state_reason and _queued().filter(id=run.id).update(state_reason=reason):
            run.state_reason = reason
            broadcasts.run_changed(run)


def _for_gpus(run: Run, gpus: Gpus, before: int) -> str:
    line = f", and {before} more {'is' if before == 1 else 'are'} before it in the line" if before else ""
    asks = counted(resources.asked(run), "GPUs")
    return f"Waits for GPUs: it asks for {asks}, the cluster has {gpus.there}, and {max(0, gpus.free)} are free{line}"


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
