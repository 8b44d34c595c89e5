"""Changes to a run after its launch. Each function checks, changes rows, audits, and tells pages and workers after commit."""

from collections.abc import Callable, Collection
from datetime import datetime
from typing import Any

from django.db import transaction
from django.db.models import Case, Q, TextField, Value, When
from django.utils import timezone

from trainer.config import ConfigInvalid, FieldProblem, resolve, upgrade_stored
from webapp.accounts.models import Membership, User
from webapp.core.auditing import audit
from webapp.core.background.priorities import Priority
from webapp.core.problems import Conflict
from webapp.core.tasks import enqueue
from webapp.inference.models import RegisteredModel
from webapp.inference.registry import services as registry
from webapp.webhooks.services import announce

from .. import names, table_facts
from ..live import broadcasts
from ..models import OVER, LoggedElsewhere, NotLaunched, Run
from ..outputs import artifacts, exporting, starting_points
from ..rewards import budgets
from . import early_stop, memory_needs, retries, spending, stopping, time_limit, token_limit, tokens, waiting_line
from .deleted_runs import unless_deleted
from .states import ENDS, WORKING, State, facts, move

RESUMABLE = (State.PAUSED, State.STOPPED, State.FAILED)


@unless_deleted
def extend(membership: Membership, run: Run, steps: int) -> Run:
    """Lets a run that has finished, or was stopped, continue to `steps` steps, as a new attempt from its last checkpoint.

    Raises ConfigInvalid at `steps`, Conflict for any other state, or if its model is in use: it would change while others use it.
    """
    if run.is_logged:
        raise LoggedElsewhere
    if run.state not in (State.FINISHED, State.STOPPED):
        raise Conflict(f"Only finished and stopped runs can be extended; this one is {run.state}.", "not_extendable")
    if steps <= run.steps_total:
        raise ConfigInvalid([FieldProblem("steps", f"must be more than the {run.steps_total:,} it has")])
    _check_limits(run)
    config = resolve(run.recipe, upgrade_stored(run.recipe, run.config) | {"steps": steps}).model_dump(mode="json")
    if user := artifacts.user_of(run):
        reason = f"{user} uses the model that this run has trained, and extending would change it. Fork the run from its last checkpoint instead."
        raise Conflict(reason, "in_use")
    if not starting_points.checkpoints(run):
        raise Conflict("The run keeps no checkpoint to continue from. Run it again with more steps.", "no_checkpoint")
    sources = (State.FINISHED, State.STOPPED)
    _again(run, sources, actor=membership.user, config=config, steps_total=steps, **_wanted(run))
    return run


@unless_deleted
def stop(membership: Membership, run: Run) -> Run:
    """Asks a run to save and end. It gives up its present step before the next micro-batch. Stopping twice, or a run that is over, is harmless.

    For a run that was logged from outside it only notes that nobody waits for more. Raises Conflict for a draft.
    """
    if run.is_draft:
        raise NotLaunched
    return stop_as(membership.user, run, f"{membership.user} asked it to stop{stopping.giving_up(run)}")


@unless_deleted
def stop_now(membership: Membership, run: Run) -> Run:
    """Ends a run without a new checkpoint: the steps since the last one are lost. Twice is harmless."""
    stop(membership, run)
    asked = f"{membership.user} asked it to stop at once"
    with transaction.atomic():
        waits = Run.objects.filter(id=run.id, attempt=run.attempt, state=State.STOPPING, stop_by=None)
        early = Q(state_reason__startswith=early_stop.BEGINS)  # its rule has ended it, and it still counts as such
        reason = Case(When(early, then="state_reason"), default=Value(asked), output_field=TextField())
        if waits.update(stop_by=timezone.now(), state_reason=reason):
            audit.record(membership, membership.user, "run.stop_now", run)
            enqueue("workers.runs.stop", run.id)
            run.refresh_from_db(from_queryset=Run.objects.with_names())
            broadcasts.run_changed(run)
    return run


def used_up(run: Run, now: datetime, early: Callable[[Run], str] = early_stop.used_up) -> str:
    """The limit of the run that is used up, or why it stops early, in words; empty if nothing stops it."""
    if time_limit.is_used_up(run, now):
        return f"Its time limit of {time_limit.limit_text(run.time_limit or time_limit.NONE)} is used up"
    return token_limit.used_up(run) or spending.used_up(run) or early(run)


def limit_used_up(run: Run) -> str:
    """The limit at which a run that is stopping was stopped, in words, as far as it is still used up; empty if there is none."""
    return used_up(run, timezone.now(), early_stop.still_used_up)


def _check_limits(run: Run) -> None:
    """Raises Conflict if the run would be stopped again at once."""
    time_limit.check(run, timezone.now())
    token_limit.check(run)
    spending.check(run)
    early_stop.check(run)


def stop_used_up(run: Run, now: datetime) -> None:
    """Stops a run if one of its limits is used up. `run` may be a while old: the row decides, so a limit that was raised meanwhile counts."""
    if not used_up(run, now):
        return
    with transaction.atomic():
        held = Run.objects.with_names().select_for_update(of=("self",), no_key=True).get(pk=run.pk)
        if told := used_up(held, now, early_stop.still_used_up):
            stop_as(None, held, f"{told}{stopping.giving_up(held)}")
    run.refresh_from_db(from_queryset=Run.objects.with_names())


def stop_at_tokens(run: Run) -> None:
    """Stops a run that is alive and has reported as many tokens as it may generate. The caller holds its lock. No query without a limit."""
    if told := token_limit.used_up(run):
        stop_as(None, run, f"{told}{stopping.giving_up(run)}")


@budgets.when_spent
def stop_spent(run: Run) -> None:
    """Stops a run whose judges have used more than they may together. No query without a limit."""
    if spending.used_up(run):
        stop_used_up(run, timezone.now())


def stop_as(actor: User | None, run: Run, reason: str) -> Run:
    """Stops like `stop`, for a person or, with None, for the server itself, which gives the reason."""
    if run.state in OVER or run.state == State.STOPPING:
        return run
    if run.is_logged:
        move(run, State.STOPPED, actor=actor, reason="Marked as stopped; the program that logs it does not know this")
        return run
    if _over_at_once(actor, run, reason):
        return run
    if move(run, State.STOPPING, actor=actor, reason=reason):
        enqueue("workers.runs.stop", run.id)
    return run


def _over_at_once(actor: User | None, run: Run, reason: str) -> bool:
    """Ends a run that no worker has taken yet, or that is paused; a worker then finds nothing to launch."""
    told = "Stopped before it started" if actor else reason
    if move(run, State.STOPPED, actor=actor, reason=told, sources=(State.QUEUED,)):
        return True
    told = "Stopped while it was paused" if actor else reason
    return move(run, State.STOPPED, actor=actor, reason=told, sources=(State.PAUSED,), ended_at=run.ended_at)


@unless_deleted
def pause(membership: Membership, run: Run) -> Run:
    """Asks a run to save and to give its place back, until it is resumed. It gives up its present step. Twice is harmless.

    Raises Conflict if it is over or stopping.
    """
    if run.is_logged:
        raise LoggedElsewhere
    user = membership.user
    if move(run, State.PAUSED, actor=user, reason="Paused before it started", sources=(State.QUEUED,)):
        return run
    if move(run, State.PAUSING, actor=user, reason=f"{user} asked it to pause{stopping.giving_up(run)}"):
        enqueue("workers.runs.stop", run.id)
    elif run.state not in (State.PAUSING, State.PAUSED):
        raise Conflict(f"Only runs that wait or run can be paused; this one is {run.state}.", "not_pausable")
    return run


@unless_deleted
def resume(membership: Membership, run: Run) -> Run:
    """Continues a paused, stopped or failed run from its last checkpoint, as a new attempt with a new token. Without a checkpoint it begins again.

    Raises Conflict for any other state. The token of the old attempt stops working in the same update, so a process
    that is still alive somewhere can write nothing more.
    """
    if run.is_logged:
        raise LoggedElsewhere
    if run.state not in RESUMABLE:
        raise Conflict(
            f"Only paused, stopped and failed runs can be resumed; this one is {run.state}.", code="not_resumable"
        )
    _check_limits(run)
    with transaction.atomic():
        if _again(run, RESUMABLE, actor=membership.user, **_wanted(run)):
            announce(run.experiment.workspace_id, "run.resumed", facts(run), by=membership.user_id)
    return run


def _wanted(run: Run) -> dict[str, Any]:
    """The fields of a run that somebody wants to continue: its losses no longer count, and it waits for no next try."""
    return {"losses": 0, **({"not_before": None} if run.losses else {})}


def may_go_on(run: Run) -> bool:
    """Whether a run that has lost a process continues by itself: not if somebody stops or pauses it, nor if it has lost as many in a
    row as it may without making another checkpoint, for then it would lose the next one as well."""
    return run.state not in ENDS and run.losses < run.retries


def go_on(run: Run, why: str) -> bool:
    """Continues a run whose process was lost, as a new attempt that keeps its place in the line, at once or after a while. False: it is
    over, or has another attempt by now."""
    now = timezone.now()
    at = retries.retry_time(run.losses, now)
    told = f"{why}. {retries.retry_text(run, at, now)}"
    return _again(run, WORKING, reason=told, losses=run.losses + 1, not_before=at, attempt_at=run.attempt_at)


def _again(run: Run, sources: Collection[str], *, actor: User | None = None, reason: str = "", **fields: Any) -> bool:
    """Starts a new attempt; the same one again if no worker has taken it yet. False: another tab or worker was first, and `run` now shows
    that attempt."""
    with transaction.atomic():
        held = Run.objects.select_for_update(no_key=True).get(pk=run.pk)
        following = Run(id=run.id, attempt=run.attempt + (not _is_untouched(held)), created_at=run.created_at)
        moved = move(
            run,
            State.QUEUED,
            sources=sources,
            actor=actor,
            reason=reason,
            attempt=following.attempt,
            token_digest=tokens.digest(following),
            ray_job_id="",
            carried_by="",
            tries=0,
            next_try_at=timezone.now(),
            heartbeat_at=None,
            ended_at=None,
            stop_by=None,
            eta_s=None,
            phase="",
            memory_needed=memory_needs.at_resume(held),
            **{"attempt_at": timezone.now(), **fields},
        )
        if moved:
            if "config" in fields:
                table_facts.keep_config(run.experiment.workspace_id, run)
                Run.objects.filter(id=run.id).update(family=run.family)
            enqueue("workers.runs.launch", run.id)
    return moved


def _is_untouched(run: Run) -> bool:
    """Whether the attempt was paused in the line, before a worker took it. Once one has, Ray may know a job of its name."""
    if run.state != State.PAUSED or run.ray_job_id or run.heartbeat_at is not None:
        return False
    return not audit.has_entry(run, f"run.{State.STARTING}", attempt=run.attempt)


@unless_deleted
def rename(membership: Membership, run: Run, name: str) -> Run:
    """An empty name falls back to `run N`."""
    name = names.optional_name(name, "name")
    with transaction.atomic():
        Run.objects.filter(id=run.id).update(name=name)
        run.refresh_from_db(from_queryset=Run.objects.with_names())
        audit.record(membership, membership.user, "run.rename", run, name=name)
        broadcasts.run_changed(run)
    return run


@unless_deleted
def prioritise(membership: Membership, run: Run, priority: Priority) -> Run:
    """Sets the priority of the run among those of its workspace, for every time it waits in the line. The same twice changes nothing.

    Raises Conflict for one that was logged from outside: it waits for nothing here.
    """
    if run.is_logged:
        raise LoggedElsewhere
    with transaction.atomic():
        if Run.objects.filter(id=run.id).exclude(priority=priority).update(priority=priority):
            audit.record(membership, membership.user, "run.priority", run, priority=priority.label.lower())
            # once this is committed: the lock of the line comes before any lock of a run
            transaction.on_commit(waiting_line.let_in)
    run.refresh_from_db(from_queryset=Run.objects.with_names())
    return run


@unless_deleted
def delete(membership: Membership, run: Run) -> None:
    """Erases a draft, or a run that is over, with all it recorded, its folder and the models in it.

    Raises Conflict while it may still write, or while something else rests on one of its models or checkpoints.
    """
    with transaction.atomic():
        row = Run.objects.select_for_update().get(id=run.id)
        if row.state not in OVER | {State.DRAFT}:
            raise Conflict("Stop the run first: only runs that are over can be deleted.", code="still_running")
        if starting_points.awaiting(row).exists():
            raise Conflict("Another run continues from its checkpoint and has not copied it yet.", code="in_use")
        if job := exporting.under_way([row.pk]).first():
            raise Conflict(f"Job {job.pk} exports a checkpoint of it. Stop that job, or wait for it.", code="in_use")
        for model in RegisteredModel.objects.filter(artifact__run=row):
            _delete_output(membership, model)
        audit.record(membership, membership.user, "run.delete", run, name=str(run), number=run.number)
        row.delete()
        enqueue("workers.runs.remove_folder", run.id)


def _delete_output(membership: Membership, model: RegisteredModel) -> None:
    try:
        registry.delete(membership, model)
    except Conflict as problem:
        reason = (
            f"{model.name}, which this run has trained, is in use: another run, model, endpoint or alias depends on it."
        )
        raise Conflict(reason, code="in_use") from problem
