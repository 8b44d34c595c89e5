"""The line of runs: how many may run at once, and what the others wait for.

A run is let in by whoever holds the lock of the line, so that the number is kept however many workers try at once. A run
that has to wait has no time for another try (`next_try_at`): the end of another run gives it one.
"""

from collections import Counter
from collections.abc import Collection, Iterator
from enum import Enum
from itertools import islice

from django.conf import settings
from django.db import transaction
from django.utils import timezone

from trainer.contracts.counted import counted
from webapp.accounts import quotas
from webapp.core import locks
from webapp.core.tasks import enqueue

from ..live import broadcasts
from ..models import LOGGED, Run, RunQuerySet
from . import resources

RUNNING = resources.RUNNING
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
    found: list[int] = []
    for run, why in _walk(Gpus()):
        if why in (Why.FULL, Why.GPUS):
            break  # nobody overtakes: a run that needs many would never get them
        if why is None:
            found.append(run.id)
    return found


class Why(Enum):
    """What keeps a run from starting. Whoever comes behind one that waits for LIMIT, QUOTA or MORE passes it."""

    LIMIT = "its workspace has as many running as it may"
    QUOTA = "its workspace would hold more GPUs than it may"
    MORE = "it asks for more GPUs than there are, which the cluster had when it was launched"
    FULL = "no place is free, or somebody before it has none"
    GPUS = "too few are free, or for somebody before it"


def _walk(gpus: "Gpus") -> Iterator[tuple[Run, Why | None]]:
    """The line in its order, each with what it waits for; None: it has a place, and takes it and its GPUs."""
    known, most = quotas.own(), settings.MAX_RUNNING_RUNS
    shut: Why | None = None
    running = Counter(launched(RUNNING).values_list("experiment__workspace_id", flat=True))
    held = resources.held()
    for run in _queued().select_related("experiment").defer("config"):
        workspace_id = run.experiment.workspace_id
        limits = quotas.of(workspace_id, known)
        if limits.running_runs is not None and running[workspace_id] >= limits.running_runs:
            yield run, Why.LIMIT
            continue
        if gpus.there and limits.gpus is not None and held[workspace_id] + resources.asked(run) > limits.gpus:
            yield run, Why.QUOTA
            continue
        if gpus.never(run):
            yield run, Why.MORE
            continue
        if shut is None and most is not None and running.total() >= most:
            shut = Why.FULL
        if shut is None and not gpus.take(run):
            shut = Why.GPUS
        if shut is None:
            running[workspace_id] += 1
            held[workspace_id] += resources.asked(run)
        yield run, shut


class Gpus:
    """Those of the cluster that nobody holds. Where it never had any, nobody waits for them; where it had some and has none now,
    everybody does."""

    def __init__(self) -> None:
        self.there, self.lost = resources.has(), resources.lost()
        self.free = max(0, self.there - resources.taken()) if self.there else 0

    def never(self, run: Run) -> bool:
        """Whether it asks for more than there is, which the cluster had when it was launched."""
        return bool(self.there) and resources.asked(run) > self.there

    def take(self, run: Run) -> bool:
        """False where too few are free."""
        if not self.there:
            return not self.lost
        needed = resources.asked(run)
        if needed > self.free:
            return False
        self.free -= needed
        return True


def tell() -> None:
    """Brings the reasons of the waiting runs up to date."""
    running = list(launched(RUNNING).with_names().order_by("id")[: NAMED + 1])
    known, gpus = quotas.own(), Gpus()
    for before, (run, why) in enumerate(islice(_walk(gpus), TOLD)):
        if why is None or run.next_try_at is not None:
            continue
        if why == Why.LIMIT:
            reason = f"Waits: {_may_run(quotas.of(run.experiment.workspace_id, known).running_runs)}"
        elif why == Why.QUOTA:
            reason = f"Waits: {resources.over_quota(run, quotas.of(run.experiment.workspace_id, known).gpus or 0)}"
        elif why == Why.FULL:
            reason = _reason(run, running, before)
        else:
            reason = _for_gpus(run, gpus, why, before)
        if reason != run.state_reason and _queued().filter(id=run.id).update(state_reason=reason):
            broadcasts.run_changed(Run.objects.with_names().get(id=run.id))


def _for_gpus(run: Run, gpus: Gpus, why: Why, before: int) -> str:
    line = f", and {before} more {'is' if before == 1 else 'are'} before it in the line" if before else ""
    if gpus.lost:
        return f"Waits for GPUs{line}: {resources.missing(gpus.lost)}"
    asks = f"it asks for {counted(resources.asked(run), 'GPUs')}, the cluster has {gpus.there}"
    if why == Why.MORE:
        return f"Waits for GPUs: {asks}. It starts once there are as many; others pass it"
    return f"Waits for GPUs: {asks}, and {gpus.free} are free{line}"


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
    return launched([Run.State.QUEUED]).order_by("attempt_at", "id")


def launched(states: Collection[str]) -> RunQuerySet:
    """The runs in these states that were launched here: one that was logged from outside takes no place."""
    return Run.objects.filter(state__in=states).exclude(recipe=LOGGED)
