"""The GPUs that jobs ask for and hold, and the limit of their workspace. The line decides when they get them."""

from trainer.config.errors import ConfigInvalid, FieldProblem
from webapp.accounts.administration import quotas

from .models import ALIVE, WeightsJob


def asked(params: dict[str, object]) -> float:
    found = params.get("resources")
    return float(found.get("gpus", 0)) if isinstance(found, dict) else 0.0


def by_workspace() -> dict[int, float]:
    """{workspace id: GPUs of the jobs that Ray has or is about to get}."""
    held: dict[int, float] = {}
    for workspace_id, params in WeightsJob.objects.filter(state__in=ALIVE).values_list("workspace_id", "params"):
        held[workspace_id] = held.get(workspace_id, 0.0) + asked(params)
    return held


def taken() -> float:
    return sum(by_workspace().values())


def check(workspace_id: int, params: dict[str, object]) -> None:
    """Raises ConfigInvalid at the field: a job that asks for more than its workspace may hold would wait for ever."""
    most = quotas.of(workspace_id).gpus
    if most is not None and asked(params) > most:
        raise ConfigInvalid([FieldProblem("resources.gpus", quotas.too_many_gpus(most))])
