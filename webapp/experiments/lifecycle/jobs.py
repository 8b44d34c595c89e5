"""Runs as Ray jobs: submitting them, and noticing when one has died. Called by the workers only.

Nothing here trusts that a task is delivered once or that a worker survives it: every step claims the row by a conditional
update, and what a lost worker leaves behind is found again by `watch`.
"""

import logging
import shutil
from datetime import datetime, timedelta

import httpx
from django.conf import settings
from django.db import transaction
from django.db.models import F, Q
from django.utils import timezone

from trainer import tracing
from trainer.config import ConfigInvalid, resolve, stored
from webapp.core import artifact_store, cluster, hearing, locks, ray_client
from webapp.core.addresses import internal_url
from webapp.core.artifact_store import StoreAway
from webapp.core.logs import asked_by
from webapp.core.problems import Problem
from webapp.core.ray_client import Job, RayAway, RayClient, RayRefused
from webapp.core.tasks import AHEAD, enqueue, written_ahead

from ..live import broadcasts
from ..models import ALIVE, LogLine, Run
from ..outputs import artifact_store as storing
from . import resources, stopping, time_limit, tokens, waiting_line
from . import services as lifecycle
from .commands import trainer_command
from .states import ENDS, State, move

logger = logging.getLogger(__name__)

LEASE = timedelta(seconds=60)  # how long one try to submit may take before another worker may try
LOST = timedelta(seconds=20)  # a launch this long overdue has lost its task
LONGEST_WAIT_S = 30
QUIET = timedelta(seconds=8)  # four missed signs of life: worth asking Ray
SILENT = timedelta(seconds=60)  # no sign of life for this long while we could hear one, and no word from Ray: given up
STALLED = timedelta(minutes=5)  # the same where it may well live: it loads torch, its machine swaps, its network is cut
HEARING_KEY = "experiments:hearing"


def job_id(run_id: int, attempt: int) -> str:
    return f"run-{run_id}-{attempt}"


def launch(run_id: int) -> float | None:
    """Submits the run to Ray if it still waits for that. Returns the seconds after which to try again, or None."""
    run = Run.objects.with_names().filter(id=run_id).first()
    if run is None:
        return None
    cluster.look()  # first: whoever has a place is told by how many GPUs there are
    if not _claim(run):
        return None
    try:
        if artifact_store.used():
            storing.make_ready(run, lambda: _hold(run))
        client = ray_client.client()
        if waiting_for := _unfinished_attempt(client, run):
            return _try_later(run, f"Attempt {waiting_for} is still ending")
        environment = {
            "TOUCHSTONE_URL": internal_url(),
            "TOUCHSTONE_RUN_ID": str(run.id),
            "TOUCHSTONE_RUN_TOKEN": tokens.run_token(run),
            "TOUCHSTONE_REQUEST_ID": asked_by(),
            **tracing.job_environment(),
        }
        client.submit(job_id(run.id, run.attempt), trainer_command(run.config), environment, resources.wanted())
    except (RayAway, StoreAway) as error:
        return _try_later(run, str(error).rstrip("."))
    except RayRefused as error:
        move(run, State.FAILED, reason=f"Ray refused the job. {error}")
        return None
    except (Problem, OSError) as error:
        move(run, State.FAILED, reason=f"What the run needs cannot be copied to the artifact store. {error}")
        return None
    _submitted(client, run)
    return None


def _claim(run: Run) -> bool:
    """True for exactly one of the workers that hold a task for this run."""
    now = timezone.now()
    if run.state == State.QUEUED:
        with transaction.atomic():
            waiting_line.lock()
            if not waiting_line.may_start(run):
                waiting_line.wait(run)
                return False
            taken = move(run, State.STARTING, reason="Handing it to Ray", next_try_at=now + LEASE)
            waiting_line.tell()
            return taken
    due = Run.objects.filter(id=run.id, attempt=run.attempt, state=State.STARTING, ray_job_id="")
    slack = timedelta(milliseconds=500)  # a countdown may end a moment before the time it was made for
    return bool(due.filter(next_try_at__lte=now + slack).update(next_try_at=now + LEASE))


def _hold(run: Run) -> None:
    """Keeps the claim: to copy a large model takes longer than a lease."""
    Run.objects.filter(id=run.id, attempt=run.attempt, state=State.STARTING, ray_job_id="").update(
        next_try_at=timezone.now() + LEASE
    )


def _unfinished_attempt(client: RayClient, run: Run) -> int | None:
    """An earlier attempt whose process may still write to the run's folder; it is told to end."""
    for attempt in range(run.attempt - 1, 0, -1):
        if not client.job(job_id(run.id, attempt)).has_ended:
            client.stop(job_id(run.id, attempt))
            return attempt
    return None


def _try_later(run: Run, why: str) -> float:
    delay = min(2.0**run.tries, LONGEST_WAIT_S)
    with transaction.atomic():
        Run.objects.filter(id=run.id, attempt=run.attempt, state=State.STARTING).update(
            tries=F("tries") + 1,
            next_try_at=timezone.now() + timedelta(seconds=delay),
            state_reason=f"{why}. It is tried again until it works.",
        )
        run.refresh_from_db(from_queryset=Run.objects.with_names())
        broadcasts.run_changed(run)
    return delay


def _submitted(client: RayClient, run: Run) -> None:
    """Notes the job; if the run was ended meanwhile, the job that nobody wants any more is stopped."""
    name = job_id(run.id, run.attempt)
    with transaction.atomic():
        noted = Run.objects.filter(id=run.id, attempt=run.attempt, state__in=ALIVE).update(
            ray_job_id=name, next_try_at=None
        )
        # its first event may have been faster than we: then the reason is no longer ours to clear
        Run.objects.filter(id=run.id, attempt=run.attempt, state=State.STARTING).update(state_reason="")
        run.refresh_from_db(from_queryset=Run.objects.with_names())
        broadcasts.run_changed(run)
    logger.info("run %s is with Ray as %s", run.id, name)
    if not noted:
        client.stop(name)


def stop(run_id: int) -> None:
    """A run that was never submitted is over, or paused, at once, and one that has to stop at once is ended. Otherwise its process
    hears of it with its next heartbeat."""
    asked = Run.objects.filter(state__in=ENDS).with_names()
    if run := asked.filter(id=run_id, ray_job_id="", heartbeat_at=None).first():
        to = ENDS[run.state]
        move(run, to, reason=f"{to.label} before it started", sources=(run.state,))
    elif run := asked.filter(id=run_id, stop_by__isnull=False).first():
        now = timezone.now()
        _inspect(run, now, now)


def remove_folder(run_id: int) -> None:
    """Erases what a deleted run wrote. Raises StoreAway, and is done again."""
    if not Run.objects.filter(id=run_id).exists():
        with locks.shared(locks.Work.BACKUP_FILES, 0):  # a backup may have seen the run, and not yet its files
            shutil.rmtree(settings.VAR / "runs" / str(run_id), ignore_errors=True)
        storing.remove(run_id)


def watch() -> datetime:
    """One round of upkeep: lost launches are queued again, dead and silent runs end as failed. Returns since when silence counts."""
    now = timezone.now()
    since = hearing.since(HEARING_KEY, now, _web_answers())
    Run.objects.filter(written_ahead("heartbeat_at"), state__in=ALIVE).update(heartbeat_at=now)
    Run.objects.filter(written_ahead("state_at"), state__in=ALIVE).update(state_at=now)
    _requeue(now)
    waiting_line.let_in()
    for run in waiting_line.launched(ALIVE).with_names():
        try:
            if time_limit.is_used_up(run, now):
                lifecycle.stop_used_up(run)
            _inspect(run, now, since)
        except Exception:  # one odd run must not keep the others from being watched
            logger.exception("cannot inspect run %s", run.id)
    return since


def _requeue(now: datetime) -> None:
    overdue = Q(next_try_at__lt=now - LOST) | Q(next_try_at__gt=now + LEASE + AHEAD)
    lost = Run.objects.filter(overdue, state__in=(State.QUEUED, State.STARTING), ray_job_id="")
    for run_id in lost.values_list("id", flat=True):
        with transaction.atomic():
            if lost.filter(id=run_id).update(next_try_at=now):
                enqueue("workers.runs.launch", run_id)


def _web_answers() -> bool:
    try:
        return httpx.get(f"{internal_url()}/readyz", timeout=5, trust_env=False).status_code == 200
    except httpx.HTTPError:
        return False


def _inspect(run: Run, now: datetime, since: datetime) -> None:
    if not run.ray_job_id and run.heartbeat_at and not _noted_late(run):
        return
    if not run.ray_job_id:
        if run.state in ENDS:
            stop(run.id)
        return
    quiet = now - (run.heartbeat_at or run.state_at)
    overdue = stopping.is_overdue(run, now, since)
    if quiet < QUIET and not overdue:
        return
    client, job = None, None
    try:
        client = ray_client.client()
        job = client.job(run.ray_job_id)
    except (RayAway, RayRefused) as error:  # refused: another cluster, another token; the run must still end
        logger.warning("cannot ask for job %s: %s", run.ray_job_id, error)
    if job and job.status == "PENDING" and not overdue and (waits := resources.waits(run)):
        _say(run, waits, now)
    elif job and job.has_ended:
        _lost(run, _death(run, job), client, may_go_on=not job.was_killed or run.step > run.start_step)
    elif overdue:
        _kill(client, run)
        at_once = run.stop_by is not None
        told = "It was ended before it had finished its step" if at_once else "It did not stop by itself and was killed"
        _end(run, f"{told}; its last checkpoint remains", client)
    elif now - max(run.heartbeat_at or run.state_at, since) > (STALLED if job or not run.heartbeat_at else SILENT):
        _kill(client, run)
        _lost(run, f"No sign of life for {quiet.total_seconds():.0f} s", client)


def _noted_late(run: Run) -> bool:
    """Of a run that speaks: Ray took it, and what was to note the job came to its end before. False: it has another attempt by now."""
    run.ray_job_id = job_id(run.id, run.attempt)
    rows = Run.objects.filter(id=run.id, attempt=run.attempt, state__in=ALIVE, ray_job_id="")
    return bool(rows.update(ray_job_id=run.ray_job_id, next_try_at=None))


def _say(run: Run, reason: str, now: datetime) -> None:
    """Why a run that Ray has does not start yet. What it waits for may come now: from here on it has the usual time to start."""
    Run.objects.filter(id=run.id, attempt=run.attempt, state=State.STARTING).update(heartbeat_at=now)
    changed = Run.objects.filter(id=run.id, attempt=run.attempt, state=State.STARTING).exclude(state_reason=reason)
    with transaction.atomic():
        if changed.update(state_reason=reason):
            run.refresh_from_db(from_queryset=Run.objects.with_names())
            broadcasts.run_changed(run)


def _lost(run: Run, reason: str, client: RayClient | None, may_go_on: bool = True) -> None:
    """A run whose process is gone goes on by itself from its last checkpoint, if it may."""
    if not (may_go_on and lifecycle.may_go_on(run)):
        return _end(run, reason, client)
    lines = _last_lines(client, run)
    with transaction.atomic():
        Run.objects.select_for_update(no_key=True).get(id=run.id)
        if lifecycle.go_on(run, reason):
            _write_down(run, [f"{run.state_reason}, as attempt {run.attempt}.", *lines], level="warning")


def _death(run: Run, job: Job) -> str:
    if job.status == "UNKNOWN":
        return "Its process is gone: Ray no longer knows the job, perhaps because Touchstone or Ray was restarted"
    end = f"Its process ended without a last word (Ray: {job.status.lower()})"
    if not job.was_killed:
        return end
    killed = f"{end}: it was killed, which is what the system does when memory runs out"
    helps = _memory_knobs(run)
    return f"{killed}. What helps: {helps}" if helps else killed


def _memory_knobs(run: Run) -> str:
    """What to lower; empty where it cannot be told. Whatever goes wrong here, the run must still end with its reason."""
    try:
        return resolve(run.recipe, stored(run.recipe, run.config)).memory_knobs()
    except ConfigInvalid:  # launched by an older version: its knobs may have other names now
        return ""
    except Exception:
        logger.exception("the recipe %r cannot tell what to lower", run.recipe)
        return ""


def _kill(client: RayClient | None, run: Run) -> None:
    if client:
        try:
            client.stop(run.ray_job_id)
        except (RayAway, RayRefused) as error:
            logger.warning("cannot stop job %s: %s", run.ray_job_id, error)


def _end(run: Run, reason: str, client: RayClient | None) -> None:
    """`failed`, or `stopped` or `paused` where that was asked for, with the last lines of the process on the page."""
    lines = _last_lines(client, run)
    with transaction.atomic():
        # locked first: a last event that arrives at this moment is either seen here or finds the run over
        Run.objects.select_for_update(no_key=True).get(id=run.id)
        if move(run, ENDS.get(run.state, State.FAILED), reason=reason):
            _write_down(
                run, [f"{reason}. Last lines of the process:" if lines else f"{reason}.", *lines], level="error"
            )


def _write_down(run: Run, texts: list[str], level: str) -> None:
    now = timezone.now()
    rows = [LogLine(run=run, time=now, step=run.step, level=level, message=text) for text in texts]
    broadcasts.log(run.id, LogLine.objects.bulk_create(rows))


def _last_lines(client: RayClient | None, run: Run) -> list[str]:
    try:
        return [line.replace("\0", "␀") for line in client.last_lines(run.ray_job_id)] if client else []
    except (RayAway, RayRefused) as error:
        return [f"(its log cannot be read: {error})"]
