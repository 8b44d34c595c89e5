"""How many GPUs a workspace holds, its jobs and what else an app above has registered, against how many it may hold.

A job is let in under the lock of the line of runs: a run and a job that come at once do not both take the last GPU.
"""

from collections.abc import Callable

from trainer.config.errors import ConfigInvalid, FieldProblem
from webapp.accounts import quotas
from webapp.core import locks

from .models import WeightsJob
from .states import ALIVE, State

BESIDE: list[Callable[[int], float]] = []
"""What else a workspace holds, by its id."""


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


def waits(job: WeightsJob) -> str:
    """Why the job has no place yet; empty where it has one. Whoever then starts it does so in the same transaction."""
    wanted = asked(job.params)
    if job.state != State.QUEUED or not wanted:
        return ""
    most = quotas.of(job.workspace_id).gpus
    if most is None:
        return ""
    locks.until_commit(locks.Work.START_RUN)
    held = by_workspace().get(job.workspace_id, 0.0) + sum(count(job.workspace_id) for count in BESIDE)
    if held + wanted <= most:
        return ""
    return f"Waits: its workspace holds {held:g} of the {most:g} GPUs that it may hold at once, and the job asks for {wanted:g}."
