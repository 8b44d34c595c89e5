"""What runs ask of the cluster: GPUs, where it has any.

A run's own process asks Ray for one, so that two runs never share a card; its workers and its processes that train together
ask for theirs when it starts them. So that no run starts with half of what it needs, the line of runs counts all of them.
"""

from collections.abc import Iterable

from trainer.config import ConfigInvalid, FieldProblem, RecipeConfig, resolve, stored
from trainer.contracts.counted import counted
from webapp.core import cluster
from webapp.core.ray_client import Wanted

from .models import Run


def has() -> int:
    """GPUs of the cluster; 0 also where nothing is known of it."""
    there = cluster.known()
    return there.gpus if there else 0


def wanted() -> Wanted:
    """Of the process that a run begins with. It reserves no processor: one that waits for what nobody else needs would never
    start on a small machine."""
    return Wanted(gpus=1 if has() else 0)


def asked(run: Run) -> int:
    """GPUs of the whole run, where there are any. A config that this version cannot read asks for one."""
    try:
        return resolve(run.recipe, stored(run.recipe, run.config)).holdings().gpus
    except ConfigInvalid:
        return 1


def taken(runs: Iterable[Run]) -> int:
    return sum(asked(run) for run in runs)


def problems(config: RecipeConfig) -> list[FieldProblem]:
    """A run that asks for more than there is would wait for ever."""
    there, held = has(), config.holdings()
    if not there or held.gpus <= there:
        return []
    field = "runner.workers" if held.sampling and held.sampling.copies else "optim.processes"
    reason = f"the run asks for {counted(held.gpus, 'GPUs')}, its own among them, and the cluster has {there}; lower it"
    return [FieldProblem(field, reason)]


def waits() -> str:
    """Why Ray has not started a run yet; empty where it asked for nothing that could be missing."""
    return f"Waits in Ray's queue for a free GPU: it asks for 1, and the cluster has {has()}" if has() else ""
