"""The resources that jobs ask of the cluster and hold: GPUs, processors, memory. The line decides when they get it."""

from trainer.config.errors import ConfigInvalid, FieldProblem
from webapp.accounts.administration import quotas
from webapp.core.distributed.ray_client import JobResources

from .models import ALIVE, WeightsJob


def asked(params: dict[str, object]) -> JobResources:
    found = params.get("resources")
    if not isinstance(found, dict):
        return JobResources()
    memory = round(float(found.get("memory_gb", 0)) * 1e9)
    return JobResources(float(found.get("cpus", 0)), float(found.get("gpus", 0)), memory)


def by_workspace() -> dict[int, JobResources]:
    """{workspace id: what its jobs have that Ray has or is about to get}."""
    held: dict[int, JobResources] = {}
    for workspace_id, params in WeightsJob.objects.filter(state__in=ALIVE).values_list("workspace_id", "params"):
        held[workspace_id] = held.get(workspace_id, JobResources()) + asked(params)
    return held


def taken() -> JobResources:
    return sum(by_workspace().values(), JobResources())


def check(workspace_id: int, params: dict[str, object]) -> None:
    """Raises ConfigInvalid at the field: a job that asks for more than its workspace may hold would wait for ever."""
    most = quotas.of(workspace_id).gpus
    if most is not None and asked(params).gpus > most:
        raise ConfigInvalid([FieldProblem("resources.gpus", quotas.too_many_gpus(most))])
