"""One table says which states follow one another, and one function changes the state of a job."""

from datetime import datetime

from django.db import transaction
from django.utils import timezone

from webapp.accounts.models import User
from webapp.core import broadcast
from webapp.core.auditing import audit
from webapp.usage import spans
from webapp.usage.models import WorkKind
from webapp.usage.works import MeteredWork
from webapp.webhooks.services import announce

from . import line, resources
from .models import WeightsJob

State = WeightsJob.State
SOURCES: dict[str, frozenset[str]] = {
    State.QUEUED: frozenset({State.STOPPED, State.FAILED, State.FINISHED}),  # services say when
    State.STARTING: frozenset({State.QUEUED}),
    State.RUNNING: frozenset({State.STARTING}),
    State.STOPPING: frozenset({State.STARTING, State.RUNNING}),
    State.STOPPED: frozenset({State.QUEUED, State.STARTING, State.RUNNING, State.STOPPING}),
    State.FINISHED: frozenset({State.STARTING, State.RUNNING, State.STOPPING}),
    State.FAILED: frozenset({State.QUEUED, State.STARTING, State.RUNNING, State.STOPPING}),
}
OVER = frozenset({State.STOPPED, State.FINISHED, State.FAILED})


def move(job: WeightsJob, to: str, *, actor: User | None = None, problem: str = "", **fields: object) -> bool:
    """Moves the job to state `to` and sets `fields` with it. False: its state or attempt does not allow this.

    Of two people or workers who try the same, one succeeds. `job` is brought up to date either way.
    """
    now = timezone.now()
    if to in OVER:
        fields |= {"ended_at": now, "next_try_at": None}
    with transaction.atomic():
        rows = WeightsJob.objects.filter(pk=job.pk, attempt=job.attempt, state__in=SOURCES[to])
        moved = rows.update(state=to, problem=problem, state_at=now, **fields)
        refresh(job)
        if moved:
            told = problem if to != State.STOPPING else ""  # the entry's actor says who asked
            detail = {"attempt": job.attempt, **({"reason": told} if told else {})}
            audit.record(job.workspace, actor, f"weights_job.{to}", job, **detail)
            broadcast_job(job)
            _enter(job, to, now)
            if to == State.RUNNING:
                announce(job.workspace_id, "weights_job.started", _facts(job))
            if to in OVER:
                by = None if actor is None else actor.pk
                if actor is None and to == State.STOPPED:
                    by = audit.who_asked(job, "weights_job.stopping", attempt=job.attempt)
                announce(job.workspace_id, f"weights_job.{to}", _facts(job), by=by)
                # once this is committed: the lock of the line comes before any lock of a job
                transaction.on_commit(line.let_in)
    return bool(moved)


def _enter(job: WeightsJob, to: str, now: datetime) -> None:
    """Notes in the ledger that an attempt has begun to run, or has ended."""
    if to == State.RUNNING:
        work = MeteredWork(job.workspace_id, WorkKind.JOB, job.pk, job.created_by_id)
        spans.begin(work, job.attempt, now, resources.asked(job.params).gpus)
    elif to in OVER:
        held = resources.asked(job.params).gpus
        told = bool(job.used.get("device"))
        spans.end(WorkKind.JOB, job.pk, now, on_gpu=bool(held) if told else None, gpus=held)


def _facts(job: WeightsJob) -> dict[str, object]:
    asked = {"weights_job": job.pk, "kind": job.kind, "title": job.title, "model": job.model_id}
    facts = {"attempt": job.attempt, "done": job.done, "total": job.total, "reason": job.problem}
    return {**asked, "version": job.version_id, **facts}


def refresh(job: WeightsJob) -> None:
    job.refresh_from_db(from_queryset=WeightsJob.objects.select_related("workspace", "model__base", "version__dataset"))


def broadcast_job(job: WeightsJob) -> None:
    """Open pages of the job ask again."""
    message = {"type": "weights_job", "id": job.pk, "state": job.state, "done": job.done, "total": job.total}
    broadcast.send(f"workspace.{job.workspace_id}", message)
