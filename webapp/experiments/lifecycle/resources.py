"""The resources that runs ask of the cluster: GPUs, processors, memory.

A run's own process asks Ray for a GPU, if there are any, so that two runs never share a card, and for the processors and the memory that its
config reserves. Its workers and its processes that train together ask for theirs when it starts them. So that no run starts with half of
what it needs, the line of runs counts all of it, and what jobs that need weights ask for.

For a run or a job that reserves no memory, the line counts what it is expected to need (`memory_needs`), so that two do not start that
together are too large for the machine. Ray is not asked for it: one that is expected to need more than there is starts alone.
"""

from collections import defaultdict
from collections.abc import Iterator
from dataclasses import replace
from datetime import datetime
from enum import Enum
from math import ceil
from typing import NamedTuple

from trainer.config import ConfigInvalid, FieldProblem, RecipeConfig, resolve, upgrade_stored
from trainer.contracts.plurals import with_noun
from webapp.accounts.administration import quotas
from webapp.core.distributed import cluster
from webapp.core.distributed.ray_client import JobResources, gigabytes
from webapp.weights import resources as weights_resources

from ..models import ALIVE, LOGGED, Run
from . import together

RUNNING = tuple(sorted(ALIVE))
KEPT = 10_000  # runs whose resources are kept: upkeep counts them every few seconds


class Kind(Enum):
    """A kind of resource, with its name in texts."""

    GPUS = "GPUs"
    CPUS = "CPUs"
    MEMORY = "memory"

    def words(self, number: float) -> str:
        """2, 1.5; of memory 8 GB."""
        return f"{gigabytes(number)} GB" if self == Kind.MEMORY else f"{number:g}"


def amount(found: JobResources, kind: Kind) -> float:
    return {Kind.GPUS: found.gpus, Kind.CPUS: found.cpus, Kind.MEMORY: found.memory_bytes}[kind]


def of_kind(found: JobResources, kind: Kind) -> JobResources:
    """The resources of one kind alone; the others are 0."""
    return {
        Kind.GPUS: JobResources(gpus=found.gpus),
        Kind.CPUS: JobResources(cpus=found.cpus),
        Kind.MEMORY: JobResources(memory_bytes=found.memory_bytes),
    }[kind]


class RunResources(NamedTuple):
    """`own`: of the process with which a run begins, with a GPU even if there are none; `whole`: with its workers, too."""

    own: JobResources
    whole: JobResources


_known: dict[tuple[int, int, datetime], RunResources] = {}


def gpus_of_cluster() -> int:
    """GPUs of the cluster; 0 also if nothing is known of it."""
    there = cluster.last_state()
    return there.gpus if there else 0


def of_cluster() -> JobResources:
    """The resources that the cluster may give away; 0 of what is not known. Memory is known only if all machines say how much they have."""
    found = cluster.last_state()
    if found is None:
        return JobResources()
    lends = [node.lends for node in found.nodes]
    return JobResources(found.cpus, found.gpus, sum(lends) if all(lends) else 0)


def lost_gpus() -> int:
    """GPUs that the cluster had, if it has none now or nothing is known of it: they are waited for. 0 if it has some, or
    never had any."""
    return 0 if gpus_of_cluster() else cluster.last_reported_gpus()


def wanted_resources(run: Run) -> JobResources:
    """The resources of the process with which a run begins. Unless its config says so, it reserves no processor: a run that waits for
    processors that nobody else needs would never start on a small machine."""
    return _if_there(process_resources(run))


def _if_there(own: JobResources) -> JobResources:
    return own if gpus_of_cluster() or lost_gpus() else replace(own, gpus=0)


def process_resources(run: Run) -> JobResources:
    """The resources of the run's first process, with a GPU even if there are none."""
    return _both(run).own


def requested_resources(run: Run, expects: bool = False) -> JobResources:
    """The resources of the whole run, with its GPUs even if there are none. A config that this version cannot read asks for one GPU.
    `expects`: with the memory that it is expected to need, if it reserves none."""
    whole = _both(run).whole
    return replace(whole, memory_bytes=run.memory_needed or 0) if expects and not whole.memory_bytes else whole


def expects_memory() -> bool:
    """Whether the memory that runs are expected to need counts: not if they train on GPUs, for each of them has its own."""
    return not (gpus_of_cluster() or lost_gpus())


def _both(run: Run) -> RunResources:
    key = (run.pk, run.attempt, run.attempt_at)  # the config of an attempt never changes
    if key not in _known:
        if len(_known) >= KEPT:
            _known.clear()
        try:
            _known[key] = of_config(resolve(run.recipe, upgrade_stored(run.recipe, run.config)))
        except ConfigInvalid:
            _known[key] = RunResources(JobResources(gpus=1), JobResources(gpus=1))
    return _known[key]


def of_config(config: RecipeConfig) -> RunResources:
    memory = round(config.resources.memory_gb * 1e9)
    return RunResources(
        JobResources(config.resources.cpus, 1, memory),
        JobResources(config.reserved_cpus(), config.holdings().gpus, memory),
    )


def taken_resources(but: Run | None = None) -> JobResources:
    """Resources of the runs that Ray has or is about to get, and of jobs that need weights; `but` does not count. GPUs are whole cards."""
    runs = Run.objects.filter(state__in=RUNNING).exclude(recipe=LOGGED).defer("config")
    mine = together.process(but) if but else ""
    expects = expects_memory()
    others = (requested_resources(run, expects) for run in together.by_process(runs) if together.process(run) != mine)
    jobs = weights_resources.taken_resources(expects)
    return sum(others, JobResources(jobs.cpus, ceil(jobs.gpus), jobs.memory_bytes))


def held_shares() -> defaultdict[int, float]:
    """{workspace id: GPUs of its runs and jobs that Ray has or is about to get}."""
    found = defaultdict(float, {key: each.gpus for key, each in weights_resources.by_workspace().items()})
    rows = Run.objects.filter(state__in=RUNNING).exclude(recipe=LOGGED).select_related("experiment").defer("config")
    for run in together.by_process(rows):
        found[run.experiment.workspace_id] += requested_resources(run).gpus
    return found


def problems(workspace_id: int, config: RecipeConfig) -> Iterator[FieldProblem]:
    """Problems of a run that asks for more than the cluster has, or than its workspace may hold: it would wait for ever."""
    there, held = gpus_of_cluster() or lost_gpus(), config.holdings()
    most = quotas.limits_of(workspace_id).gpus
    reason = ""
    if there and most is not None and held.gpus > most:
        reason = f"and {quotas.too_many_gpus(most)}"
    elif there and held.gpus > there:
        reason = f"and the cluster has {there}; lower it"
    if reason:
        field = "runner.workers" if held.sampling and held.sampling.copies else "optim.processes"
        yield FieldProblem(field, f"the run asks for {with_noun(held.gpus, 'GPUs')}, its own among them, {reason}")
    else:
        yield from _too_large(of_config(config))


def _too_large(asked: RunResources) -> Iterator[FieldProblem]:
    """Problems of a run for whose own process no machine is large enough, or which asks for more processors than all machines have."""
    found = cluster.last_state()
    if found is None or not (asked.whole.cpus or asked.whole.memory_bytes):
        return
    cpus, lends = max(node.cpus for node in found.nodes), max(node.lends for node in found.nodes)
    if asked.own.cpus > cpus:
        yield FieldProblem("resources.cpus", f"the largest machine of the cluster has {cpus:g}; lower it")
    elif lends and asked.own.memory_bytes > lends:
        told = f"a machine of the cluster can reserve at most {gigabytes(lends)} GB; lower it"
        yield FieldProblem("resources.memory_gb", told)
    elif not any(node.has(_if_there(asked.own)) for node in found.nodes):
        told = f"no machine of the cluster has {_if_there(asked.own).words} at once; lower one of them"
        yield FieldProblem("resources.cpus", told)
    elif asked.whole.cpus > found.cpus:
        told = f"the run reserves {asked.whole.cpus:g} CPUs with those of its workers, and the cluster has {found.cpus:g}; lower it"
        yield FieldProblem("runner.cpus_per_worker", told)


def over_quota(gpus: float, most: int) -> str:
    asks = JobResources(gpus=gpus).words
    return f"it asks for {asks}, and this workspace may hold {most} at once. An administrator of this installation can change that"


def missing_resources(run: Run) -> str:
    """The reason why Ray has not started a run yet; empty if nothing that it asked for is missing."""
    if gone := lost_gpus():
        return f"Waits in Ray's queue: {missing(gone)}"
    there, asks = gpus_of_cluster(), wanted_resources(run)
    if there and taken_resources(but=run).gpus >= there:
        return f"Waits in Ray's queue for a free GPU: it asks for 1, and the cluster has {there}"
    if asks.cpus or asks.memory_bytes:  # others than this installation may use the cluster
        return f"Waits in Ray's queue until a machine of the cluster has {asks.words} free"
    return ""


def missing(gone: int) -> str:
    return (
        f"the cluster had {with_noun(gone, 'GPUs')}, and now Ray reports none. It continues once they are back. If they will not come "
        f"back, the person who runs this installation can remove {cluster.REMEMBERED} in its folder; runs then train on the "
        "processor"
    )
