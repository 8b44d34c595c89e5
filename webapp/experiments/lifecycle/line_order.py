"""The order of the line of runs and jobs, and what keeps each from starting.

Workspaces take turns: the one with least under way comes first, so that forty runs of one workspace do not make others wait for all forty.
Within a workspace it goes by priority, then in the order in which they were asked for.
"""

from collections import Counter, deque
from collections.abc import Iterable, Iterator
from dataclasses import replace
from enum import Enum
from math import ceil

from django.conf import settings
from django.utils import timezone

from webapp.accounts.administration import quotas
from webapp.core.distributed import cluster
from webapp.core.distributed.ray_client import JobResources
from webapp.weights import line as weights_line
from webapp.weights import resources as weights_resources

from . import resources, together
from .claimants import Claimant, launched, waiting
from .resources import Kind, amount

DIGITS = 4  # of a number of processors: Ray counts in parts of 1/10,000


class Why(Enum):
    """The reason why something does not start. Those behind a waiter for TIME, LIMIT, QUOTA or MORE may pass it; behind a waiter for
    resources (SHORT), only what asks for none of them."""

    TIME = "it is not to start yet"
    LIMIT = "its workspace has as many runs under way as it may"
    QUOTA = "its workspace would hold more GPUs than it may"
    MORE = "it asks for more than there is"
    FULL = "no place is free, or somebody before it has none"
    SHORT = "too little is free, or for somebody before it"


class Free:
    """The free part of the cluster, of each kind of resource. A kind that the cluster does not have, or of which nothing is known, is not
    counted. If it had GPUs and has none now, every run that asks for GPUs waits."""

    def __init__(self) -> None:
        self.there, self.lost = resources.of_cluster(), resources.lost_gpus()
        found = cluster.last_state()
        self._nodes = found.nodes if found and not self.lost and settings.MAX_RUNNING_RUNS is not None else ()
        self._of_jobs = weights_resources.taken_resources().gpus
        taken = resources.taken_resources()
        self._free = {kind: max(0, round(amount(self.there, kind) - amount(taken, kind), DIGITS)) for kind in Kind}

    def of(self, kind: Kind) -> float:
        return self._free[kind]

    @property
    def all(self) -> JobResources:
        return JobResources(self._free[Kind.CPUS], self._free[Kind.GPUS], int(self._free[Kind.MEMORY]))

    def never(self, claimant: Claimant) -> bool:
        """Whether it asks for more than the cluster has. A run asks for no more than the cluster had at its launch."""
        if self.there.gpus and claimant.gpus > self.there.gpus:
            return True
        if not self._nodes:
            return False  # where there are places for all, Ray may keep it waiting, and start machines for it
        own = self.own(claimant)
        return claimant.asks.cpus > self.there.cpus or not any(node.has(own) for node in self._nodes)

    def own(self, claimant: Claimant) -> JobResources:
        """The resources that it asks for on one machine."""
        own = claimant.own
        return own if claimant.job or self.there.gpus else replace(own, gpus=0)

    def counted(self, claimant: Claimant) -> set[Kind]:
        """The kinds of resources for which it may have to wait."""
        found = {kind for kind in Kind if amount(claimant.asks, kind) and amount(self.there, kind)}
        return found | {Kind.GPUS} if self.lost and claimant.gpus else found

    def short(self, claimant: Claimant) -> bool:
        """Whether too little is free of something that it asks for."""
        return any(self.needed(claimant, kind) > self._free[kind] for kind in self.counted(claimant))

    def take(self, claimant: Claimant) -> None:
        for kind in self.counted(claimant):
            self._free[kind] = round(self._free[kind] - self.needed(claimant, kind), DIGITS)
        self._of_jobs += claimant.gpus if claimant.job else 0

    def needed(self, claimant: Claimant, kind: Kind) -> float:
        """The free resources that it takes: jobs may share a card. What no machine has is left to Ray, and not counted here. A run that is
        expected to need more memory than there is takes all of it, so that it runs alone."""
        asks = amount(claimant.asks, kind)
        if kind == Kind.GPUS:
            return ceil(self._of_jobs + asks) - ceil(self._of_jobs) if claimant.job else ceil(asks)
        if kind == Kind.MEMORY and claimant.expected:
            return min(asks, amount(self.there, kind))
        return asks if asks <= amount(self.there, kind) else 0

    def keeps(self, claimant: Claimant) -> set[Kind]:
        """The kinds of resources that nobody takes before one that waits. Memory that it is only expected to need, and that is free, does not
        keep others from starting: otherwise nothing would pass a run that waits for a GPU or a processor."""
        found = self.counted(claimant)
        enough = self.needed(claimant, Kind.MEMORY) <= self._free[Kind.MEMORY]
        return found - {Kind.MEMORY} if claimant.expected and enough else found


class Shares:
    """The work under way of each workspace."""

    def __init__(self, free: Free) -> None:
        self._free, self._limits = free, quotas.limits_by_workspace()
        rows = launched(resources.RUNNING).select_related("experiment").defer("config")
        self._runs = Counter(run.experiment.workspace_id for run in together.by_process(rows))
        self.turns = self._runs + Counter(weights_line.placed().values_list("workspace_id", flat=True))
        self.places = self.turns.total()
        self._held = resources.held_shares()

    def refuses(self, claimant: Claimant) -> Why | None:
        workspace_id = claimant.workspace_id
        limits = quotas.limits_of(workspace_id, self._limits)
        if claimant.run and limits.running_runs is not None and self._runs[workspace_id] >= limits.running_runs:
            return Why.LIMIT
        counts = claimant.gpus and (self._free.there.gpus or claimant.job)
        if counts and limits.gpus is not None and self._held[workspace_id] + claimant.gpus > limits.gpus:
            return Why.QUOTA
        return Why.MORE if self._free.never(claimant) else None

    def give(self, claimant: Claimant) -> None:
        self.places += 1
        self._runs[claimant.workspace_id] += claimant.run is not None
        self._held[claimant.workspace_id] += claimant.gpus


def walk(free: Free) -> Iterator[tuple[Claimant, Why | None]]:
    """The line in its order, each with the reason why it waits; None: it has a place, and takes it and what it asks for. Those that may not
    start yet come last, the next one first."""
    shares, most = Shares(free), settings.MAX_RUNNING_RUNS
    shut: set[Kind] = set()  # kinds of resources for which one before waits: nobody overtakes it
    promised = 0
    now, later = timezone.now(), []
    for each in _by_turns(shares.turns):
        if each.not_before is not None and each.not_before > now:
            later.append((each.not_before, each.key, each))
            continue
        if why := shares.refuses(each):
            yield each, why
            continue
        shares.turns[each.workspace_id] += 1
        kinds = free.counted(each)
        if most is not None and shares.places + promised >= most:
            yield each, Why.SHORT if shut & kinds and shares.places < most else Why.FULL
        elif shut & kinds or free.short(each):
            shut |= free.keeps(each)
            promised += 1  # nobody takes the place that is left for it
            yield each, Why.SHORT
        else:
            free.take(each)
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
