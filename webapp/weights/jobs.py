"""Takes jobs from the queue to Ray and back: nothing runs twice, nothing runs for ever. Runs go the same way, see
`webapp.core.distributed.ray_jobs`."""

import logging
from datetime import datetime, timedelta

from django.conf import settings
from django.db import transaction
from django.utils import timezone

from webapp.core.background import liveness
from webapp.core.distributed import cluster, reconciling
from webapp.core.distributed.ray_client import RayClient, RayJob
from webapp.core.distributed.ray_jobs import LEASE, Entrypoint, RayJobKind, ask, death, job_text, kill, last_lines
from webapp.inference.folders import stored

from . import line, resources, tokens
from .kinds import KINDS
from .models import ALIVE, WeightsJob, WeightsLogLine
from .states import State, broadcast_job, move, refresh

logger = logging.getLogger(__name__)

HEARING_KEY = "weights:hearing"
QUIET = timedelta(seconds=15)  # without a sign of life: worth asking Ray
SILENT = timedelta(minutes=5)  # given up
STOP_GRACE = timedelta(minutes=2)


def _told(job: WeightsJob) -> None:
    refresh(job)
    broadcast_job(job)


WEIGHTS: RayJobKind[WeightsJob] = RayJobKind(
    WeightsJob.objects.select_related("workspace"),
    "weights",
    "workers.weights.launch",
    "problem",
    ALIVE,
    _told,
    "weights_job.reconciled",
    lambda job: job.workspace,
)


def launch(pk: int) -> float | None:
    """Submits the job if it still waits for that. Returns the seconds after which to try again, or None."""
    job = WeightsJob.objects.select_related("workspace", "model__base", "version__dataset").filter(pk=pk).first()
    if job is None:
        return None
    cluster.refresh()  # first: the places depend on the resources
    if not _claim(job):
        return None
    return WEIGHTS.hand_over(
        job,
        copy=lambda: stored.copied(job.workspace_id, KINDS[job.kind].models(job).values(), lambda: WEIGHTS.hold(job)),
        order=lambda: _entrypoint(job),
        fail=lambda problem: move(job, State.FAILED, problem=problem),
    )


def _entrypoint(job: WeightsJob) -> Entrypoint:
    environment = {"TOUCHSTONE_WEIGHTS_JOB": str(job.pk), "TOUCHSTONE_RUN_TOKEN": tokens.token(job)}
    return Entrypoint(_command(job), environment, resources.asked(job.params))


def _command(job: WeightsJob) -> str:
    """The command of the process. The entry of runs does jobs too, so a cluster with its own way to start runs needs no second one."""
    own = job.params.get("sampler", {}).get("kind") == "vllm"
    return str(settings.VLLM_TRAINER_COMMAND if own else settings.TRAINER_COMMAND)


def _claim(job: WeightsJob) -> bool:
    """True for exactly one of the workers that hold a task for this job."""
    if job.state == State.QUEUED:
        return line.is_waiting(job) and line.admit(
            job, lambda: move(job, State.STARTING, next_try_at=timezone.now() + LEASE)
        )
    return WEIGHTS.claim_again(job)


def stop(pk: int) -> None:
    """Ends a job that was never submitted at once. Any other process is told with its next sign of life."""
    unheard = WeightsJob.objects.filter(state=State.STOPPING, ray_job_id="", heartbeat_at=None)
    if job := unheard.select_related("workspace").filter(pk=pk).first():
        move(job, State.STOPPED, problem="Stopped before it started")


def watch() -> None:
    """One round of upkeep: lost launches are queued again, dead and silent jobs end as failed."""
    now = timezone.now()
    since = liveness.alive_since(HEARING_KEY, now)
    WEIGHTS.tidy(now)
    alive = asked = 0
    for job in WeightsJob.objects.select_related("workspace").filter(state__in=ALIVE):
        alive += 1
        try:
            asked += _inspect(job, now, since)
        except Exception:  # one odd job must not keep the others from being watched
            logger.exception("cannot inspect weights job %s", job.pk)
    reconciling.compared("jobs", alive, asked)


def _inspect(job: WeightsJob, now: datetime, since: datetime) -> bool:
    """Repairs differences from what Ray says. Returns whether Ray had to be asked."""
    if not job.ray_job_id and job.heartbeat_at and not WEIGHTS.noted_late(job):
        return False
    if not job.ray_job_id:
        if job.state == State.STOPPING:
            stop(job.pk)
        return False
    quiet = now - (job.heartbeat_at or job.state_at)
    overdue = job.state == State.STOPPING and now - max(job.state_at, since) > STOP_GRACE
    if quiet < QUIET and not overdue:
        return False
    client, found = ask(job)
    if found and found.has_ended:
        _finish(job, death(found), client, found)
    elif found and found.status == "PENDING" and not overdue:
        waits = f"Ray waits until a machine of the cluster has {resources.asked(job.params).words or 'a place'} free."
        WEIGHTS.attempt(job, state=State.STARTING).update(problem=waits)
        _told(job)
    elif overdue or now - max(job.heartbeat_at or job.state_at, since) > SILENT:
        kill(client, job)
        why = (
            "It did not stop by itself and was killed"
            if overdue
            else f"No sign of life for {quiet.total_seconds():.0f} s"
        )
        _finish(job, why, client, found)
    return True


def _finish(job: WeightsJob, reason: str, client: RayClient | None, found: RayJob | None) -> None:
    """Ends the job as `failed`, or `stopped` if that was asked for, with the last lines of the process in the log. `found`: what Ray said
    of it."""
    lines, believed = last_lines(client, job), job.state
    with transaction.atomic():
        WeightsJob.objects.select_for_update(no_key=True).get(pk=job.pk)
        if move(job, State.STOPPED if job.state == State.STOPPING else State.FAILED, problem=reason):
            as_what = "counts as stopped" if job.state == State.STOPPED else "was given up as failed"
            WEIGHTS.repaired(job, believed=believed, ray=job_text(found), done=f"{reason}, so it {as_what}")
            told = (WeightsLogLine(job=job, level="error", message=line) for line in (f"{reason}.", *lines))
            WeightsLogLine.objects.bulk_create(told)
