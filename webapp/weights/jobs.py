"""From the queue to Ray and back, as runs go: nothing runs twice, nothing runs for ever."""

import logging
from datetime import datetime, timedelta

from django.conf import settings
from django.db import transaction
from django.db.models import F, Q
from django.utils import timezone

from trainer import tracing
from webapp.core import artifact_store, hearing, ray_client
from webapp.core.addresses import internal_url
from webapp.core.artifact_store import StoreAway
from webapp.core.problems import Problem
from webapp.core.ray_client import Job, RayAway, RayClient, RayRefused, Wanted
from webapp.core.tasks import AHEAD, enqueue, written_ahead
from webapp.inference.folders import stored

from . import gpus, tokens
from .kinds import KINDS
from .models import WeightsJob, WeightsLogLine
from .states import ALIVE, State, move, refresh, tell

logger = logging.getLogger(__name__)

HEARING_KEY = "weights:hearing"
LEASE = timedelta(seconds=60)  # how long one try to submit may take before another worker may try
LOST = timedelta(seconds=20)  # a launch this long overdue has lost its task
LONGEST_WAIT_S = 30
BETWEEN = timedelta(seconds=10)  # a job whose workspace holds all its GPUs looks again
SLACK = timedelta(milliseconds=500)  # a countdown may end a moment before the time it was made for
QUIET = timedelta(seconds=15)  # without a sign of life: worth asking Ray
SILENT = timedelta(minutes=5)  # given up
STOP_GRACE = timedelta(minutes=2)


def job_id(job: WeightsJob, attempt: int | None = None) -> str:
    return f"weights-{job.pk}-{attempt or job.attempt}"


def launch(pk: int) -> float | None:
    """Submits the job if it still waits for that. Returns the seconds after which to try again, or None."""
    job = WeightsJob.objects.select_related("workspace", "model__base", "version__dataset").filter(pk=pk).first()
    if job is None:
        return None
    with transaction.atomic():
        if why := gpus.waits(job):
            return _wait(job, why)
        if not _claim(job):
            return None
    try:
        if artifact_store.used():
            stored.copied(job.workspace_id, KINDS[job.kind].models(job).values(), lambda: _hold(job))
        client = ray_client.client()
        if job.attempt > 1 and not client.job(job_id(job, job.attempt - 1)).has_ended:
            client.stop(job_id(job, job.attempt - 1))
            return _try_later(job, f"Attempt {job.attempt - 1} is still ending")
        environment = {
            "TOUCHSTONE_URL": internal_url(),
            "TOUCHSTONE_WEIGHTS_JOB": str(job.pk),
            "TOUCHSTONE_RUN_TOKEN": tokens.token(job),
            **tracing.job_environment(),
        }
        client.submit(job_id(job), _command(job), environment, wanted(job))
    except (RayAway, StoreAway) as error:
        return _try_later(job, str(error).rstrip("."))
    except RayRefused as error:
        move(job, State.FAILED, problem=f"Ray refused the job. {error}")
        return None
    except (Problem, OSError) as error:
        move(job, State.FAILED, problem=f"What the job needs cannot be copied to the artifact store. {error}")
        return None
    _submitted(client, job)
    return None


def wanted(job: WeightsJob) -> Wanted:
    asked = job.params.get("resources") or {}
    return Wanted(asked.get("cpus", 0), gpus.asked(job.params), round(asked.get("memory_gb", 0) * 1e9))


def _command(job: WeightsJob) -> str:
    """The entry of runs does jobs too: a cluster that starts runs in its own way needs no second way."""
    own = job.params.get("sampler", {}).get("kind") == "vllm"
    return str(settings.VLLM_TRAINER_COMMAND if own else settings.TRAINER_COMMAND)


def _claim(job: WeightsJob) -> bool:
    """True for exactly one of the workers that hold a task for this job."""
    now = timezone.now()
    if job.state == State.QUEUED:
        return move(job, State.STARTING, next_try_at=now + LEASE)
    due = WeightsJob.objects.filter(pk=job.pk, attempt=job.attempt, state=State.STARTING, ray_job_id="")
    return bool(due.filter(next_try_at__lte=now + SLACK).update(next_try_at=now + LEASE))


def _wait(job: WeightsJob, why: str) -> float | None:
    """Of several workers that hold a task for this job, one comes back."""
    now = timezone.now()
    due = WeightsJob.objects.filter(pk=job.pk, attempt=job.attempt, state=State.QUEUED)
    if not due.filter(next_try_at__lte=now + SLACK).update(problem=why, next_try_at=now + BETWEEN):
        return None
    refresh(job)
    tell(job)
    return BETWEEN.total_seconds()


def _hold(job: WeightsJob) -> None:
    """Keeps the claim: to copy a large model takes longer than a lease."""
    rows = WeightsJob.objects.filter(pk=job.pk, attempt=job.attempt, state=State.STARTING, ray_job_id="")
    rows.update(next_try_at=timezone.now() + LEASE)


def _try_later(job: WeightsJob, why: str) -> float:
    delay = min(2.0**job.tries, LONGEST_WAIT_S)
    with transaction.atomic():
        WeightsJob.objects.filter(pk=job.pk, attempt=job.attempt, state=State.STARTING).update(
            tries=F("tries") + 1,
            next_try_at=timezone.now() + timedelta(seconds=delay),
            problem=f"{why}. It is tried again until it works.",
        )
        refresh(job)
        tell(job)
    return delay


def _submitted(client: RayClient, job: WeightsJob) -> None:
    """Notes the job; if it was ended meanwhile, the process that nobody wants any more is stopped."""
    name = job_id(job)
    rows = WeightsJob.objects.filter(pk=job.pk, attempt=job.attempt)
    noted = rows.filter(state__in=ALIVE).update(ray_job_id=name, next_try_at=None)
    rows.filter(state=State.STARTING).update(problem="")
    if not noted:
        client.stop(name)


def stop(pk: int) -> None:
    """A job that was never submitted is over at once. Otherwise its process hears of it with its next sign of life."""
    unheard = WeightsJob.objects.filter(state=State.STOPPING, ray_job_id="", heartbeat_at=None)
    if job := unheard.select_related("workspace").filter(pk=pk).first():
        move(job, State.STOPPED, problem="Stopped before it started")


def watch() -> None:
    """One round of upkeep: lost launches are queued again, dead and silent jobs end as failed."""
    now = timezone.now()
    since = hearing.since(HEARING_KEY, now)
    overdue = Q(next_try_at__lt=now - LOST) | Q(next_try_at__gt=now + LEASE + AHEAD)
    lost = WeightsJob.objects.filter(overdue, state__in=(State.QUEUED, State.STARTING), ray_job_id="")
    WeightsJob.objects.filter(written_ahead("heartbeat_at"), state__in=ALIVE).update(heartbeat_at=now)
    WeightsJob.objects.filter(written_ahead("state_at"), state__in=ALIVE).update(state_at=now)
    for pk in lost.values_list("pk", flat=True):
        with transaction.atomic():
            if lost.filter(pk=pk).update(next_try_at=now):
                enqueue("workers.weights.launch", pk)
    for job in WeightsJob.objects.select_related("workspace").filter(state__in=ALIVE):
        try:
            _inspect(job, now, since)
        except Exception:  # one odd job must not keep the others from being watched
            logger.exception("cannot inspect weights job %s", job.pk)


def _inspect(job: WeightsJob, now: datetime, since: datetime) -> None:
    if not job.ray_job_id and job.heartbeat_at and not _noted_late(job):
        return
    if not job.ray_job_id:
        if job.state == State.STOPPING:
            stop(job.pk)
        return
    quiet = now - (job.heartbeat_at or job.state_at)
    overdue = job.state == State.STOPPING and now - max(job.state_at, since) > STOP_GRACE
    if quiet < QUIET and not overdue:
        return
    client, found = None, None
    try:
        client = ray_client.client()
        found = client.job(job.ray_job_id)
    except (RayAway, RayRefused) as error:
        logger.warning("cannot ask for job %s: %s", job.ray_job_id, error)
    if found and found.has_ended:
        _finish(job, _death(found), client)
    elif found and found.status == "PENDING" and not overdue:
        waits = f"Ray waits until a machine of the cluster has {_words(wanted(job))} free."
        WeightsJob.objects.filter(pk=job.pk, attempt=job.attempt, state=State.STARTING).update(problem=waits)
        refresh(job)
        tell(job)
    elif overdue or now - max(job.heartbeat_at or job.state_at, since) > SILENT:
        _kill(client, job)
        why = (
            "It did not stop by itself and was killed"
            if overdue
            else f"No sign of life for {quiet.total_seconds():.0f} s"
        )
        _finish(job, why, client)


def _noted_late(job: WeightsJob) -> bool:
    """Of a job that speaks: Ray took it, and what was to note that came to its end before. False: it has another attempt by now."""
    job.ray_job_id = job_id(job)
    rows = WeightsJob.objects.filter(pk=job.pk, attempt=job.attempt, state__in=ALIVE, ray_job_id="")
    return bool(rows.update(ray_job_id=job.ray_job_id, next_try_at=None))


def _words(asked: Wanted) -> str:
    parts = [(asked.cpus, f"{asked.cpus:g} CPUs"), (asked.gpus, f"{asked.gpus:g} GPUs")]
    parts.append((asked.memory_bytes, f"{asked.memory_bytes / 1e9:g} GB of memory"))
    return ", ".join(words for number, words in parts if number) or "a place"


def _death(found: Job) -> str:
    if found.status == "UNKNOWN":
        return "Its process is gone: Ray no longer knows the job, perhaps because Touchstone or Ray was restarted"
    end = f"Its process ended without a last word (Ray: {found.status.lower()})"
    return f"{end}: it was killed, which is what the system does when memory runs out" if found.was_killed else end


def _kill(client: RayClient | None, job: WeightsJob) -> None:
    if client:
        try:
            client.stop(job.ray_job_id)
        except (RayAway, RayRefused) as error:
            logger.warning("cannot stop job %s: %s", job.ray_job_id, error)


def _finish(job: WeightsJob, reason: str, client: RayClient | None) -> None:
    """`failed`, or `stopped` where that was asked for, with the last lines of the process in the log."""
    try:
        lines = client.last_lines(job.ray_job_id) if client else []
    except (RayAway, RayRefused) as error:
        lines = [f"(its log cannot be read: {error})"]
    with transaction.atomic():
        WeightsJob.objects.select_for_update(no_key=True).get(pk=job.pk)
        if move(job, State.STOPPED if job.state == State.STOPPING else State.FAILED, problem=reason):
            told = [f"{reason}.", *(line.replace("\0", "␀") for line in lines)]
            WeightsLogLine.objects.bulk_create(WeightsLogLine(job=job, level="error", message=line) for line in told)
