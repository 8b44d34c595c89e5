"""The order of the line of runs and jobs, and what keeps each from starting.

Workspaces take turns: the one with least under way comes first, so that forty runs of one workspace do not make others wait for all forty.
Within a workspace it goes by priority, then in the order in which they were asked for.
"""

from collections import Counter, deque
from collections.abc import Iterable, Iterator
from enum import Enum
from math import ceil

from django.conf import settings
from django.utils import timezone

from webapp.accounts.administration import quotas
from webapp.core import cluster
from webapp.weights import gpus as weights_gpus
from webapp.weights import jobs as weights_jobs
from webapp.weights import line as weights_line

from . import resources, together
from .claimants import Claimant, launched, waiting


class Why(Enum):
    """Why something does not start. Those behind a waiter for TIME, LIMIT, QUOTA or MORE may pass it; behind a waiter for GPUS, only a job
    that needs none."""

    TIME = "it is not to start yet"
    LIMIT = "its workspace has as many runs under way as it may"
    QUOTA = "its workspace would hold more GPUs than it may"
    MORE = "it asks for more than there is"
    FULL = "no place is free, or somebody before it has none"
    GPUS = "too few are free, or for somebody before it"


class Gpus:
    """The GPUs of the cluster that nobody holds. If the cluster never had any, no run waits for them. If it had some and has none now,
    every run that asks for GPUs waits."""

    def __init__(self) -> None:
        self.there, self.lost = resources.has(), resources.lost()
        self._of_jobs = weights_gpus.taken()
        self.free = max(0, self.there - resources.taken()) if self.there else 0

    def never(self, claimant: Claimant) -> bool:
        """Whether it asks for more than the cluster has. A run asks for no more than the cluster had at its launch."""
        if self.there and claimant.gpus > self.there:
            return True
        found = cluster.known()
        if claimant.job is None or found is None or self.lost or settings.MAX_RUNNING_RUNS is None:
            return False  # where there are places for all, Ray may keep it waiting, and start machines for it
        wanted = weights_jobs.wanted(claimant.job)
        return not any(node.has(wanted) for node in found.nodes)

    def take(self, claimant: Claimant) -> bool:
        """False if too few are free."""
        if not self.there:
            return not self.lost or not claimant.gpus
        needed = self._cards(claimant)
        if needed > self.free:
            return False
        self.free -= needed
        self._of_jobs += claimant.gpus if claimant.job else 0
        return True

    def _cards(self, claimant: Claimant) -> int:
        """The number of free cards that it needs: jobs may share one."""
        return ceil(self._of_jobs + claimant.gpus) - ceil(self._of_jobs) if claimant.job else ceil(claimant.gpus)


class Shares:
    """The work under way of each workspace."""

    def __init__(self, gpus: Gpus) -> None:
        self._gpus, self._limits = gpus, quotas.own()
        rows = launched(resources.RUNNING).select_related("experiment").defer("config")
        self._runs = Counter(run.experiment.workspace_id for run in together.by_process(rows))
        self.turns = self._runs + Counter(weights_line.placed().values_list("workspace_id", flat=True))
        self.places = self.turns.total()
        self._held = resources.held()

    def refuses(self, claimant: Claimant) -> Why | None:
        workspace_id = claimant.workspace_id
        limits = quotas.of(workspace_id, self._limits)
        if claimant.run and limits.running_runs is not None and self._runs[workspace_id] >= limits.running_runs:
            return Why.LIMIT
        counts = claimant.gpus and (self._gpus.there or claimant.job)
        if counts and limits.gpus is not None and self._held[workspace_id] + claimant.gpus > limits.gpus:
            return Why.QUOTA
        return Why.MORE if self._gpus.never(claimant) else None

    def give(self, claimant: Claimant) -> None:
        self.places += 1
        self._runs[claimant.workspace_id] += claimant.run is not None
        self._held[claimant.workspace_id] += claimant.gpus


def walk(gpus: Gpus) -> Iterator[tuple[Claimant, Why | None]]:
    """The line in its order, each with the reason why it waits; None: it has a place, and takes it and its GPUs. Those that may not start
    yet come last, the next one first."""
    shares, most = Shares(gpus), settings.MAX_RUNNING_RUNS
    shut, promised = False, 0
    now, later = timezone.now(), []
    for each in _by_turns(shares.turns):
        if each.not_before is not None and each.not_before > now:
            later.append((each.not_before, each.key, each))
            continue
        if why := shares.refuses(each):
            yield each, why
            continue
        shares.turns[each.workspace_id] += 1
        if most is not None and shares.places + promised >= most:
            yield each, Why.GPUS if shut and each.gpus and shares.places < most else Why.FULL
        elif (shut and each.gpus) or not gpus.take(each):
            shut = True
            promised += 1  # nobody takes the place that is left for it
            yield each, Why.GPUS
        else:
            shares.give(each)
            yield each, None
    yield from ((each, Why.TIME) for _, _, each in sorted(later, key=lambda found: found[:2]))


def _by_turns(turns: Counter[int]) -> Iterator[Claimant]:
    """All that wait. The caller counts in `turns` that a workspace has had its turn, when it takes the next one."""
    lines: dict[int, deque[Claimant]] = {}
    for each in ranked(waiting()):
        lines.setdefault(each.workspace_id, deque()).append(each)
    while lines:
        one = min(lines, key=lambda each: (turns[each], lines[each][0].since, each))
        yield lines[one].popleft()
        if not lines[one]:
            del lines[one]


def ranked(found: Iterable[Claimant]) -> list[Claimant]:
    """The claimants by `rank`: each workspace's own are let in in this order."""
    return sorted(found, key=lambda each: each.rank)
