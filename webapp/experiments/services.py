"""All that people do to runs. Each function checks, changes rows, audits, and tells pages and workers after commit."""

from typing import Any

from django.db import IntegrityError, transaction
from django.db.models import Max, QuerySet
from django.utils import timezone

from trainer.config import ConfigInvalid, FieldProblem, resolve, stored
from webapp.accounts.models import Membership, User
from webapp.core import audit, once
from webapp.core.problems import Conflict, Invalid
from webapp.core.tasks import enqueue
from webapp.inference import services as registry
from webapp.inference.models import RegisteredModel

from . import broadcasts, checks, outputs, people, starting_points, tokens
from .models import Experiment, Run, RunSlot
from .states import OVER, State, move
from .table import facts

MOST_LOSSES = 2  # processes in a row, after which the next one's end is the run's
GOES_ON = "It goes on by itself from its last checkpoint"


def create_experiment(membership: Membership, name: str, description: str = "") -> Experiment:
    """Raises Invalid at `name` if it is empty, too long or taken."""
    name = checks.name(name, "name")
    try:
        with transaction.atomic():
            row = Experiment.objects.create(workspace=membership.workspace, name=name, description=description)
            audit.record(membership, membership.user, "experiment.create", row, name=name)
    except IntegrityError as error:
        raise Invalid("This experiment exists.", {"name": "another experiment has this name"}) from error
    return row


def launch(
    membership: Membership,
    *,
    recipe: str,
    config: dict[str, Any],
    dataset: checks.DatasetChoice,
    model: str | None = None,
    experiment: str | None = None,
    name: str = "",
    forked_from: Run | None = None,
    start_step: int = 0,
    key: str | None = None,
) -> Run:
    """Checks everything a run needs, writes it as `queued` and hands it to the workers.

    `model` replaces the config's `model.name`; `experiment` is made if it does not exist. The same `key` launches once:
    the second click, tab or delivery gets the run of the first. `start_step`: the checkpoint of `forked_from` to go on
    from. Raises Invalid with every field that is wrong, KeyReused where the key came with another request before.
    """
    rest = [str(each) for each in (dataset, model, experiment, name, forked_from and forked_from.pk, start_step)]
    asked = once.key(key, recipe, config, rest)
    if earlier := once.earlier(_mine(membership), asked):
        return earlier
    plan = checks.plan(membership, recipe, config, dataset, model)
    start = starting_points.checkpoint(forked_from, start_step) if forked_from and start_step else None
    if forked_from and start:
        checks.continues(plan, forked_from, start_step)
    name = checks.optional_name(name, "name")
    title = checks.name(experiment or plan.recipe.title, "experiment")
    try:
        with transaction.atomic():
            if start:
                starting_points.hold(start)
            run = _create(membership, plan, title, name, forked_from, asked, start_step)
            if start:
                starting_points.adopt(start, run)
    except IntegrityError:  # two requests with one key at the same moment: the other one made it
        if earlier := once.made_meanwhile(Run, membership.user, _mine(membership), asked):
            return earlier
        raise
    return run


def _mine(membership: Membership) -> QuerySet[Run]:
    return Run.objects.with_names().filter(created_by=membership.user, experiment__workspace=membership.workspace)


def _create(
    membership: Membership,
    plan: checks.Plan,
    title: str,
    name: str,
    forked_from: Run | None,
    key: once.Key | None,
    start_step: int,
) -> Run:
    version = checks.frozen(membership, plan.version)
    row, _ = Experiment.objects.get_or_create(workspace=membership.workspace, name=title)
    Experiment.objects.select_for_update().get(id=row.id)  # two launches at once must not take the same number
    last = row.runs.aggregate(last=Max("number"))["last"] or 0
    run = Run.objects.create(
        experiment=row,
        number=last + 1,
        name=name,
        recipe=plan.recipe.name,
        config=plan.config,
        dataset_version=version,
        model=plan.model,
        graded_in=people.chosen(membership.workspace_id, plan.config),
        forked_from=forked_from,
        steps_total=plan.steps,
        start_step=start_step,
        step=start_step,
        created_by=membership.user,
        launch_key=key and key.text,
        launch_digest=key.digest if key else "",
        next_try_at=timezone.now(),
    )
    facts.keep_config(membership.workspace_id, run)
    Run.objects.filter(id=run.id).update(token_digest=tokens.digest(run), family=run.family)
    RunSlot.objects.bulk_create(
        RunSlot(run=run, role=slot.role, path=slot.path, model=slot.model, judge=slot.judge) for slot in plan.slots
    )
    audit.record(membership, membership.user, "run.launch", run, recipe=run.recipe, name=str(run))
    enqueue("workers.runs.launch", run.id)
    run.refresh_from_db(from_queryset=Run.objects.with_names())
    broadcasts.run_changed(run)
    return run


def fork(
    membership: Membership,
    run: Run,
    *,
    overrides: dict[str, Any],
    dataset: checks.DatasetChoice | None = None,
    model: str | None = None,
    experiment: str | None = None,
    name: str = "",
    start_step: int = 0,
    key: str | None = None,
) -> Run:
    """Runs `run` again with changes: `overrides` is laid over its config; what is not named stays as it was.

    With `start_step` the new run goes on from that checkpoint of `run`. Raises Conflict where it keeps none of that step.
    """
    return launch(
        membership,
        recipe=run.recipe,
        config=merged(stored(run.recipe, run.config), overrides),
        dataset=dataset or checks.DatasetChoice(id=run.dataset_version.dataset_id, version=run.dataset_version.number),
        model=model,
        experiment=experiment or run.experiment.name,
        name=name,
        forked_from=run,
        start_step=start_step,
        key=key,
    )


def extend(membership: Membership, run: Run, steps: int) -> Run:
    """Lets a run that has finished, or was stopped, go on to `steps` steps, as a new attempt from its last checkpoint.

    Raises ConfigInvalid at `steps`, Conflict for any other state, or where its model is in use: it would change under
    whoever uses it.
    """
    if run.state not in (State.FINISHED, State.STOPPED):
        raise Conflict(f"Only finished and stopped runs can be extended; this one is {run.state}.", "not_extendable")
    if steps <= run.steps_total:
        raise ConfigInvalid([FieldProblem("steps", f"must be more than the {run.steps_total:,} it has")])
    config = check_config(run.recipe, stored(run.recipe, run.config) | {"steps": steps})
    if user := outputs.user_of(run):
        reason = f"{user} uses the model that this run has trained, and extending would change it. Fork the run from its last checkpoint instead."
        raise Conflict(reason, "in_use")
    if not starting_points.checkpoints(run):
        raise Conflict("The run keeps no checkpoint to go on from. Run it again with more steps.", "no_checkpoint")
    sources = (State.FINISHED, State.STOPPED)
    _again(run, sources, actor=membership.user, losses=0, config=config, steps_total=steps)
    return run


def merged(base: dict[str, Any], overrides: dict[str, Any]) -> dict[str, Any]:
    """`overrides` over `base`: sections are merged, everything else (lists too) is replaced."""
    out = dict(base)
    for key, value in overrides.items():
        under = out.get(key)
        out[key] = merged(under, value) if isinstance(under, dict) and isinstance(value, dict) else value
    return out


def check_config(recipe: str, config: dict[str, Any]) -> dict[str, Any]:
    """The resolved config as JSON. Raises ConfigInvalid with every field that is wrong."""
    return resolve(recipe, config).model_dump(mode="json")


def stop(membership: Membership, run: Run) -> Run:
    """Asks a run to end after its present step with a checkpoint. Stopping twice, or a run that is over, is harmless."""
    if run.state in OVER or run.state == State.STOPPING:
        return run
    actor = membership.user
    if move_queued_to_stopped(membership, run):
        return run
    if move(run, State.STOPPING, actor=actor, reason=f"{actor} asked it to stop"):
        enqueue("workers.runs.stop", run.id)
    return run


def move_queued_to_stopped(membership: Membership, run: Run) -> bool:
    """A run that no worker has taken yet is over at once; afterwards a worker finds nothing to launch."""
    with transaction.atomic():
        if not Run.objects.select_for_update().filter(id=run.id, state=State.QUEUED, attempt=run.attempt).exists():
            return False
        return move(run, State.STOPPED, actor=membership.user, reason="Stopped before it started")


def resume(membership: Membership, run: Run) -> Run:
    """Continues a stopped or failed run from its last checkpoint, as a new attempt with a new token.

    Raises Conflict for any other state. The token of the old attempt stops working in the same update, so a process
    that is still alive somewhere can write nothing more.
    """
    if run.state not in (State.STOPPED, State.FAILED):
        raise Conflict(f"Only stopped and failed runs can be resumed; this one is {run.state}.", code="not_resumable")
    _again(run, (State.STOPPED, State.FAILED), actor=membership.user, losses=0)
    return run


def may_go_on(run: Run) -> bool:
    """Whether a run that has lost a process goes on by itself: not where somebody stops it, nor where it has lost several in a row
    without making another checkpoint, for then it would lose the next one as well."""
    return run.state != State.STOPPING and run.losses < MOST_LOSSES


def go_on(run: Run, reason: str) -> bool:
    """Continues a run whose process was lost, as a new attempt that keeps its place in the line. False: it is over, or has another
    attempt by now."""
    sources = (State.STARTING, State.RUNNING, State.PAUSED)
    return _again(run, sources, reason=reason, losses=run.losses + 1, attempt_at=run.attempt_at)


def _again(run: Run, sources: tuple[State, ...], *, actor: User | None = None, reason: str = "", **fields: Any) -> bool:
    """A new attempt. False: another tab or worker was first, and `run` now shows that attempt."""
    following = Run(id=run.id, attempt=run.attempt + 1, created_at=run.created_at)
    with transaction.atomic():
        moved = move(
            run,
            State.QUEUED,
            sources=sources,
            actor=actor,
            reason=reason,
            attempt=following.attempt,
            token_digest=tokens.digest(following),
            ray_job_id="",
            tries=0,
            next_try_at=timezone.now(),
            heartbeat_at=None,
            ended_at=None,
            eta_s=None,
            phase="",
            **{"attempt_at": timezone.now(), **fields},
        )
        if moved:
            if "config" in fields:
                facts.keep_config(run.experiment.workspace_id, run)
                Run.objects.filter(id=run.id).update(family=run.family)
            enqueue("workers.runs.launch", run.id)
    return moved


def rename(membership: Membership, run: Run, name: str) -> Run:
    """An empty name falls back to `run N`."""
    name = checks.optional_name(name, "name")
    with transaction.atomic():
        Run.objects.filter(id=run.id).update(name=name)
        run.refresh_from_db(from_queryset=Run.objects.with_names())
        audit.record(membership, membership.user, "run.rename", run, name=name)
        broadcasts.run_changed(run)
    return run


def delete(membership: Membership, run: Run) -> None:
    """Erases a run that is over, with all it recorded, its folder and the models in it.

    Raises Conflict while it may still write, or while something else rests on one of its models or checkpoints.
    """
    with transaction.atomic():
        row = Run.objects.select_for_update().filter(id=run.id, state__in=OVER).first()
        if row is None:
            raise Conflict("Stop the run first: only runs that are over can be deleted.", code="still_running")
        if starting_points.awaiting(row).exists():
            raise Conflict("A run that goes on from its checkpoint has not taken it over yet.", code="in_use")
        for model in RegisteredModel.objects.filter(artifact__run=row):
            _delete_output(membership, model)
        audit.record(membership, membership.user, "run.delete", run, name=str(run), number=run.number)
        row.delete()
        enqueue("workers.runs.remove_folder", run.id)


def _delete_output(membership: Membership, model: RegisteredModel) -> None:
    try:
        registry.delete(membership, model)
    except Conflict as problem:
        reason = f"{model.name}, which this run has trained, is in use: another run, model or endpoint rests on it."
        raise Conflict(reason, code="in_use") from problem
