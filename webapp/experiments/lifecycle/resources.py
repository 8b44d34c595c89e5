"""What runs ask of the cluster: GPUs, if it has any.

A run's own process asks Ray for one, so that two runs never share a card; its workers and its processes that train together
ask for theirs when it starts them. So that no run starts with half of what it needs, the line of runs counts all of them, and those of jobs
that need weights.
"""

from collections import defaultdict
from datetime import datetime
from math import ceil

from trainer.config import ConfigInvalid, FieldProblem, RecipeConfig, resolve, stored
from trainer.contracts.counted import counted
from webapp.accounts.administration import quotas
from webapp.core import cluster
from webapp.core.ray_client import JobResources
from webapp.weights import gpus as weights_gpus

from ..models import ALIVE, LOGGED, Run
from . import together

RUNNING = tuple(sorted(ALIVE))
KEPT = 10_000  # runs whose number of GPUs is kept: upkeep counts them every few seconds
_known: dict[tuple[int, int, datetime], int] = {}


def has() -> int:
    """GPUs of the cluster; 0 also if nothing is known of it."""
    there = cluster.known()
    return there.gpus if there else 0


def lost() -> int:
    """GPUs that the cluster had, if it has none now or nothing is known of it: they are waited for. 0 if it has some, or
    never had any."""
    return 0 if has() else cluster.had()


def wanted() -> JobResources:
    """The resources of the process with which a run begins. It reserves no processor: a run that waits for processors that nobody else
    needs would never start on a small machine."""
    return JobResources(gpus=1 if has() or lost() else 0)


def asked(run: Run) -> int:
    """GPUs of the whole run, if there are any. A config that this version cannot read asks for one."""
    key = (run.pk, run.attempt, run.attempt_at)  # the config of an attempt never changes
    if key not in _known:
        if len(_known) >= KEPT:
            _known.clear()
        _known[key] = _asked(run)
    return _known[key]


def _asked(run: Run) -> int:
    try:
        return resolve(run.recipe, stored(run.recipe, run.config)).holdings().gpus
    except ConfigInvalid:
        return 1


def taken(but: Run | None = None) -> int:
    """GPUs of the runs that Ray has or is about to get, and of jobs that need weights; those of `but` do not count."""
    runs = Run.objects.filter(state__in=RUNNING).exclude(recipe=LOGGED).defer("config")
    mine = together.process(but) if but else ""
    held = sum(asked(run) for run in together.by_process(runs) if together.process(run) != mine)
    return held + ceil(weights_gpus.taken())


def held() -> defaultdict[int, float]:
    """{workspace id: GPUs of its runs and jobs that Ray has or is about to get}."""
    found = defaultdict(float, weights_gpus.by_workspace())
    rows = Run.objects.filter(state__in=RUNNING).exclude(recipe=LOGGED).select_related("experiment").defer("config")
    for run in together.by_process(rows):
        found[run.experiment.workspace_id] += asked(run)
    return found


def problems(workspace_id: int, config: RecipeConfig) -> list[FieldProblem]:
    """Problems of a run that asks for more than the cluster has, or than its workspace may hold: it would wait for ever."""
    there, held = has() or lost(), config.holdings()
    most = quotas.of(workspace_id).gpus
    if there and most is not None and held.gpus > most:
        reason = f"and {quotas.too_many_gpus(most)}"
    elif there and held.gpus > there:
        reason = f"and the cluster has {there}; lower it"
    else:
        return []
    field = "runner.workers" if held.sampling and held.sampling.copies else "optim.processes"
    return [FieldProblem(field, f"the run asks for {counted(held.gpus, 'GPUs')}, its own among them, {reason}")]


def over_quota(gpus: float, most: int) -> str:
    return f"it asks for {words(gpus)}, and this workspace may hold {most} at once. An administrator of this installation can change that"


def words(gpus: float) -> str:
    return counted(int(gpus), "GPUs") if gpus == int(gpus) else f"{gpus:g} GPUs"


def waits(run: Run) -> str:
    """Why Ray has not started a run yet; empty if nothing that it asked for is missing."""
    if gone := lost():
        return f"Waits in Ray's queue: {missing(gone)}"
    there = has()
    if not there or taken(but=run) < there:
        return ""
    return f"Waits in Ray's queue for a free GPU: it asks for 1, and the cluster has {there}"


def missing(gone: int) -> str:
    return (
        f"the cluster had {counted(gone, 'GPUs')}, and now Ray reports none. It continues once they are back. If they will not come "
        f"back, the person who runs this installation can remove {cluster.REMEMBERED} in its folder; runs then train on the "
        "processor"
    )
