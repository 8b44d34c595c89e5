"""Who comes when in the line of runs, and what keeps each from starting.

Workspaces take turns: whoever runs least comes first, so that forty runs of one keep nobody else waiting for forty. Within a
workspace it goes by priority, then in the order in which they were asked for.
"""

from collections import Counter, deque
from collections.abc import Collection, Iterator
from enum import Enum

from django.conf import settings
from django.utils import timezone

from webapp.accounts import quotas

from ..models import LOGGED, Run, RunQuerySet
from . import resources


class Why(Enum):
    """What keeps a run from starting. Whoever comes behind one that waits for TIME, LIMIT, QUOTA or MORE passes it."""

    TIME = "it is not to start yet"
    LIMIT = "its workspace has as many running as it may"
    QUOTA = "its workspace would hold more GPUs than it may"
    MORE = "it asks for more GPUs than there are, which the cluster had when it was launched"
    FULL = "no place is free, or somebody before it has none"
    GPUS = "too few are free, or for somebody before it"


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


def walk(gpus: Gpus) -> Iterator[tuple[Run, Why | None]]:
    """The line in its order, each with what it waits for; None: it has a place, and takes it and its GPUs. Last come those that are not
    to start yet, the next one first."""
    known, most = quotas.own(), settings.MAX_RUNNING_RUNS
    shut: Why | None = None
    running = Counter(launched(resources.RUNNING).values_list("experiment__workspace_id", flat=True))
    held, turns = resources.held(), Counter(running)
    now, later = timezone.now(), []
    for run in _by_turns(turns):
        if run.not_before is not None and run.not_before > now:
            later.append((run.not_before, run.pk, run))
            continue
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
        turns[workspace_id] += 1
        if shut is None and most is not None and running.total() >= most:
            shut = Why.FULL
        if shut is None and not gpus.take(run):
            shut = Why.GPUS
        if shut is None:
            running[workspace_id] += 1
            held[workspace_id] += resources.asked(run)
        yield run, shut
    yield from ((run, Why.TIME) for _, _, run in sorted(later))


def _by_turns(turns: Counter[int]) -> Iterator[Run]:
    """The queued runs. Whoever asks for the next one counts in `turns` that its workspace has had this one."""
    lines: dict[int, deque[Run]] = {}
    for run in queued().select_related("experiment").defer("config"):
        lines.setdefault(run.experiment.workspace_id, deque()).append(run)
    while lines:
        one = min(lines, key=lambda each: (turns[each], lines[each][0].attempt_at, each))
        yield lines[one].popleft()
        if not lines[one]:
            del lines[one]


def queued() -> RunQuerySet:
    """Of each workspace in the order in which they are let in."""
    return launched([Run.State.QUEUED]).order_by("-priority", "attempt_at", "id")


def launched(states: Collection[str]) -> RunQuerySet:
    """The runs in these states that were launched here: one that was logged from outside takes no place."""
    return Run.objects.filter(state__in=states).exclude(recipe=LOGGED)
