"""The resources that jobs ask of the cluster and hold: GPUs, processors, memory. The line decides when they get it."""

from dataclasses import replace

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


def counted(params: dict[str, object], needed: int | None) -> JobResources:
    """The resources that the line counts: those that the job asks for, and, if it reserves no memory, what it is expected to need."""
    found = asked(params)
    return found if found.memory_bytes else replace(found, memory_bytes=needed or 0)


def by_workspace(expects: bool = False) -> dict[int, JobResources]:
    """{workspace id: what its jobs have that Ray has or is about to get}. `expects`: with the memory that they are expected to need."""
    held: dict[int, JobResources] = {}
    rows = WeightsJob.objects.filter(state__in=ALIVE).values_list("workspace_id", "params", "memory_needed")
    for workspace_id, params, needed in rows:
        held[workspace_id] = held.get(workspace_id, JobResources()) + counted(params, needed if expects else None)
    return held


def taken_resources(expects: bool = False) -> JobResources:
    return sum(by_workspace(expects).values(), JobResources())


def check(workspace_id: int, params: dict[str, object]) -> None:
    """Raises ConfigInvalid at the field: a job that asks for more than its workspace may hold would wait for ever."""
    most = quotas.limits_of(workspace_id).gpus
    if most is not None and asked(params).gpus > most:
        raise ConfigInvalid([FieldProblem("resources.gpus", quotas.too_many_gpus(most))])
