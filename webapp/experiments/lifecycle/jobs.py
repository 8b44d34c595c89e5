"""Runs as Ray jobs: submitting them, and detecting dead ones. Called by the workers only.

`webapp.core.distributed.ray_jobs` has what all our jobs with Ray share. This module has what belongs to runs: the line, checkpoints from which a run
continues after its process was lost, and pauses.
"""

import json
import logging
import shutil
from collections.abc import Mapping
from datetime import datetime, timedelta

import httpx
from django.conf import settings
from django.db import transaction
from django.utils import timezone

from trainer.config import ConfigInvalid, resolve, upgrade_stored
from trainer.contracts import CARRIES
from webapp.core.background import liveness
from webapp.core.database import locks
from webapp.core.distributed import cluster, reconciling
from webapp.core.distributed.ray_client import RayClient, RayJob
from webapp.core.distributed.ray_jobs import (
    LEASE,
    NOT_ASKED,
    Entrypoint,
    RayJobKind,
    ask,
    death,
    job_text,
    kill,
    last_lines,
)
from webapp.core.monitoring.logs import asked_by
from webapp.core.network.addresses import internal_url
from webapp.core.tasks import enqueue

from ..live import broadcasts
from ..models import ALIVE, LogLine, Run
from ..outputs import artifact_store as storing
from ..outputs import starting_points
from . import claimants, resources, retries, stopping, together, tokens, waiting_line
from . import services as lifecycle
from .commands import trainer_command
from .states import ENDS, State, move

logger = logging.getLogger(__name__)

QUIET = timedelta(seconds=8)  # four missed signs of life: worth asking Ray
SILENT = timedelta(seconds=60)  # no sign of life for this long while we could hear one, and no word from Ray: given up
STALLED = timedelta(minutes=5)  # the same where it may well live: it loads torch, its machine swaps, its network is cut
HEARING_KEY = "experiments:hearing"
DONE: Mapping[str, str] = {
    State.FAILED: "was given up as failed",
    State.STOPPED: "counts as stopped",
    State.PAUSED: "counts as paused",
}


def _told(run: Run) -> None:
    run.refresh_from_db(from_queryset=Run.objects.with_names())
    broadcasts.run_changed(run)


RUN: RayJobKind[Run] = RayJobKind(
    Run.objects.select_related("experiment__workspace"),
    "run",
    "workers.runs.launch",
    "state_reason",
    ALIVE,
    _told,
    "run.reconciled",
    lambda run: run.experiment.workspace,
    together.goes_on,
)


def launch(run_id: int) -> float | None:
    """Submits the run to Ray if it still waits for that. Returns the seconds after which to try again, or None."""
    run = Run.objects.with_names().filter(id=run_id).first()
    if run is None:
        return None
    cluster.refresh()  # first: the places depend on the number of GPUs
    if not _claim(run):
        return None
    after = RUN.hand_over(
        run,
        copy=lambda: storing.make_ready(run, lambda: RUN.hold(run)),
        order=lambda: _entrypoint(run),
        fail=lambda reason: move(run, State.FAILED, reason=reason),
    )
    together.handed_over(run)
    return after


def _entrypoint(run: Run) -> Entrypoint:
    environment = {
        "TOUCHSTONE_RUN_ID": str(run.id),
        "TOUCHSTONE_RUN_TOKEN": tokens.run_token(run),
        "TOUCHSTONE_REQUEST_ID": asked_by(),
    }
    if carried := {str(each.pk): tokens.run_token(each) for each in together.carried(run)}:
        environment[CARRIES] = json.dumps(carried)
    return Entrypoint(trainer_command(run.config), environment, resources.wanted_resources(run))


def _claim(run: Run) -> bool:
    """True for exactly one of the workers that hold a task for this run."""
    if run.state == State.QUEUED:
        if together.is_waited_for(run):
            waiting_line.pass_over(run)
            return False
        return waiting_line.admit(claimants.of_run(run), lambda: _take(run))
    return RUN.claim_again(run)


def _take(run: Run) -> bool:
    """Takes the place for the run, and for the runs that its process is to train as well."""
    lease = timezone.now() + LEASE
    if not move(run, State.STARTING, reason="Handing it to Ray", next_try_at=lease, carried_by=""):
        return False
    for guest in together.company(run):
        told = f"Handing it to Ray: it trains together with {run}"
        move(guest, State.STARTING, reason=told, next_try_at=None, carried_by=together.own_job(run))
    return True


def stop(run_id: int) -> None:
    """Ends a run that was never submitted, or pauses it, at once; ends a run that must stop at once. Any other process is told with its
    next heartbeat."""
    asked = Run.objects.filter(state__in=ENDS).with_names()
    if run := asked.filter(id=run_id, ray_job_id="", heartbeat_at=None).first():
        to = ENDS[run.state]
        move(run, to, reason=f"{to.label} before it started", sources=(run.state,))
    elif run := asked.filter(id=run_id, stop_by__isnull=False).first():
        now = timezone.now()
        _inspect(run, now, now)


def remove_folder(run_id: int) -> None:
    """Deletes the files of a deleted run. Raises StoreAway, and is called again."""
    if not Run.objects.filter(id=run_id).exists():
        with locks.shared(locks.Work.BACKUP_FILES, 0):  # a backup may have seen the run, and not yet its files
            shutil.rmtree(settings.VAR / "runs" / str(run_id), ignore_errors=True)
        storing.remove(run_id)


def watch() -> datetime:
    """One round of upkeep: lost launches are queued again, dead and silent runs end as failed. Returns since when silence counts."""
    now = timezone.now()
    since = liveness.alive_since(HEARING_KEY, now, _web_answers())
    RUN.tidy(now)
    retries.set_clocks_right(now)
    _put_back()
    waiting_line.let_in()
    alive = asked = 0
    for run in waiting_line.launched(ALIVE).with_names():
        alive += 1
        try:
            lifecycle.stop_used_up(run, now)
            asked += _inspect(run, now, since)
        except Exception:  # one odd run must not keep the others from being watched
            logger.exception("cannot inspect run %s", run.id)
    reconciling.compared("runs", alive, asked)
    return since


def _put_back() -> None:
    """Puts runs back into the line whose carrier does not start any more."""
    for run in together.let_go():
        with transaction.atomic():
            believed = f"{run.state}, to be trained by the process of {run.carried_by}"
            if move(run, State.QUEUED, sources=(State.STARTING,), carried_by="", next_try_at=timezone.now()):
                enqueue("workers.runs.launch", run.pk)
                done = "that run does not start any more, so this one waits in the line again"
                RUN.repaired(run, believed=believed, ray=NOT_ASKED, done=done)


def _web_answers() -> bool:
    try:
        return httpx.get(f"{internal_url()}/readyz", timeout=5, trust_env=False).status_code == 200
    except httpx.HTTPError:
        return False


def _inspect(run: Run, now: datetime, since: datetime) -> bool:
    """Repairs differences from what Ray says. Returns whether Ray had to be asked."""
    if not run.ray_job_id and run.heartbeat_at and not RUN.noted_late(run):
        return False
    if not run.ray_job_id:
        if run.state in ENDS:
            stop(run.id)
        return False
    quiet = now - (run.heartbeat_at or run.state_at)
    overdue = stopping.is_overdue(run, now, since)
    if quiet < QUIET and not overdue:
        return False
    client, job = ask(run)
    if job and job.status == "PENDING" and not overdue and (waits := resources.missing_resources(run)):
        _say(run, waits, now)
    elif job and job.has_ended:
        _lost(run, _death(run, job), client, job, may_go_on=not job.was_killed or run.step > run.start_step)
    elif overdue:
        _kill(client, run)
        at_once = run.stop_by is not None
        told = "It was ended before it had saved" if at_once else "It did not stop by itself and was killed"
        _end(run, f"{told}; {starting_points.remains(run)}", client, job)
    elif now - max(run.heartbeat_at or run.state_at, since) > (STALLED if job or not run.heartbeat_at else SILENT):
        _kill(client, run)
        _lost(run, f"No sign of life for {quiet.total_seconds():.0f} s", client, job)
    return True


def _kill(client: RayClient | None, run: Run) -> None:
    """Ends the process of the run. If others train in it, it learns with its next message that it no longer trains this run."""
    heard = timezone.now() - QUIET
    if not together.others(run).filter(heartbeat_at__gte=heard).exists():
        kill(client, run)


def _say(run: Run, reason: str, now: datetime) -> None:
    """Stores why a run that Ray has does not start yet. Its resources may become free now, so from here on it has the usual time to
    start."""
    Run.objects.filter(id=run.id, attempt=run.attempt, state=State.STARTING).update(heartbeat_at=now)
    changed = Run.objects.filter(id=run.id, attempt=run.attempt, state=State.STARTING).exclude(state_reason=reason)
    with transaction.atomic():
        if changed.update(state_reason=reason):
            _told(run)


def _lost(run: Run, reason: str, client: RayClient | None, found: RayJob | None, may_go_on: bool = True) -> None:
    """Lets a run whose process is gone continue by itself, if it may. `found`: what Ray said of it."""
    if not (may_go_on and lifecycle.may_go_on(run)):
        return _end(run, reason, client, found)
    lines, believed, lost = last_lines(client, run), run.state, run.attempt
    with transaction.atomic():
        Run.objects.select_for_update(no_key=True).get(id=run.id)
        if lifecycle.go_on(run, reason):
            done = f"{reason}, so it continues as attempt {run.attempt}"
            RUN.repaired(run, believed=believed, ray=job_text(found), done=done, attempt=lost)
            _write_down(run, [f"{run.state_reason}, as attempt {run.attempt}.", *lines], level="warning")


def _death(run: Run, job: RayJob) -> str:
    helps = _memory_knobs(run) if job.was_killed else ""
    return f"{death(job)}. Remedies: {helps}" if helps else death(job)


def _memory_knobs(run: Run) -> str:
    """The settings to lower; empty if they are not known. If this fails, the run must still end with its reason."""
    try:
        return resolve(run.recipe, upgrade_stored(run.recipe, run.config)).memory_knobs()
    except ConfigInvalid:  # launched by an older version: its knobs may have other names now
        return ""
    except Exception:
        logger.exception("the recipe %r cannot tell what to lower", run.recipe)
        return ""


def _end(run: Run, reason: str, client: RayClient | None, found: RayJob | None) -> None:
    """Ends the run as `failed`, or `stopped` or `paused` if that was asked for, with the last lines of the process on the page."""
    lines, believed = last_lines(client, run), run.state
    with transaction.atomic():
        # locked first: a last event that arrives at this moment is either seen here or finds the run over
        Run.objects.select_for_update(no_key=True).get(id=run.id)
        if move(run, ENDS.get(run.state, State.FAILED), reason=reason):
            RUN.repaired(run, believed=believed, ray=job_text(found), done=f"{reason}, so it {DONE[run.state]}")
            _write_down(
                run, [f"{reason}. Last lines of the process:" if lines else f"{reason}.", *lines], level="error"
            )


def _write_down(run: Run, texts: list[str], level: str) -> None:
    now = timezone.now()
    rows = [LogLine(run=run, time=now, step=run.step, level=level, message=text) for text in texts]
    broadcasts.log(run.id, LogLine.objects.bulk_create(rows))
