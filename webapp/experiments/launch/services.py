"""Writes runs: a launch, a fork, an experiment. Checks first, then rows, the audit entry, and tasks after commit."""

from datetime import datetime
from typing import Any

from django.db import IntegrityError, transaction
from django.db.models import Max, QuerySet
from django.utils import timezone

from trainer.config import resolve
from webapp.accounts.models import Membership
from webapp.core.auditing import audit
from webapp.core.problems import Invalid
from webapp.core.requests import idempotency
from webapp.core.tasks import enqueue
from webapp.datasets.models import DatasetVersion

from .. import names, table_facts
from ..lifecycle import memory_needs, schedule, tokens
from ..lifecycle import retries as trying
from ..lifecycle.limits import NONE, RunLimits
from ..live import broadcasts
from ..models import RETRIES, Experiment, LogLine, Run, RunSlot
from ..outputs import starting_points
from ..people import human_grades
from . import checks, named_rows


def create_experiment(membership: Membership, name: str, description: str = "") -> Experiment:
    """Raises Invalid at `name` if it is empty, too long or taken."""
    name = names.name(name, "name")
    try:
        with transaction.atomic():
            row = Experiment.objects.create(workspace=membership.workspace, name=name, description=description)
            audit.record(membership, membership.user, "experiment.create", row, name=name)
    except IntegrityError as error:
        raise Invalid(
            "There is an experiment with this name already.", {"name": "another experiment has this name"}
        ) from error
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
    not_before: datetime | None = None,
    retries: int = RETRIES,
    limits: RunLimits = NONE,
) -> Run:
    """Checks everything a run needs, writes it as `queued` and hands it to the workers.

    `model` replaces the config's `model.name`; `experiment` is made if it does not exist. The same `key` launches once:
    the second click, tab or delivery gets the run of the first. `start_step`: the checkpoint of `forked_from` to continue
    from. `not_before`: until then it takes no place. `retries`: processes in a row that it may lose. `limits`: it has
    them before anything can start it. Raises Invalid with every field that is wrong, KeyReused if the key came with another request before.
    """
    rest = [str(each) for each in (dataset, model, experiment, name, forked_from and forked_from.pk, start_step)]
    # keys of before these could be asked for stay what they were
    rest += [not_before.isoformat()] if not_before else []
    rest += [f"retries {retries}"] if retries != RETRIES else []
    rest += [f"limits {limits.json()}"] if limits else []
    asked = idempotency.key(key, recipe, config, rest)
    if earlier := idempotency.row_of_key(runs_of_person(membership), asked):
        return earlier
    plan = checks.plan(membership, recipe, config, dataset, model)
    schedule.check(not_before)
    trying.check(retries)
    limits.check(recipe)
    start = starting_points.checkpoint(forked_from, start_step) if forked_from and start_step else None
    if forked_from and start:
        checks.continues(plan, forked_from, start_step)
    name = names.optional_name(name, "name")
    title = names.name(experiment or plan.recipe.title, "experiment")
    try:
        with transaction.atomic():
            if start:
                starting_points.keep_checkpoint(start)
            run = _create(membership, plan, title, name, forked_from, asked, start_step, not_before, retries, limits)
            if start:
                starting_points.adopt(start, run)
    except IntegrityError:  # two requests with one key at the same moment: the other one made it
        if earlier := idempotency.made_meanwhile(Run, membership.user, runs_of_person(membership), asked):
            return earlier
        raise
    return run


def runs_of_person(membership: Membership) -> QuerySet[Run]:
    """The runs of this person, among which a key is unique."""
    return Run.objects.with_names().filter(created_by=membership.user, experiment__workspace=membership.workspace)


def _create(
    membership: Membership,
    plan: checks.RunPlan,
    title: str,
    name: str,
    forked_from: Run | None,
    key: idempotency.Key | None,
    start_step: int,
    not_before: datetime | None,
    retries: int,
    limits: RunLimits,
) -> Run:
    version = checks.frozen(membership, plan.version)
    run = Run.objects.create(
        **numbered(membership, title),
        name=name,
        recipe=plan.recipe.name,
        **of_plan(membership, plan, version),
        forked_from=forked_from,
        start_step=start_step,
        step=start_step,
        created_by=membership.user,
        launch_key=key and key.text,
        launch_digest=key.digest if key else "",
        next_try_at=timezone.now(),
        not_before=not_before,
        retries=retries,
        **limits.columns(),
    )
    table_facts.keep_config(membership.workspace_id, run)
    needed = memory_needs.at_launch(run)
    Run.objects.filter(id=run.id).update(token_digest=tokens.digest(run), family=run.family, memory_needed=needed)
    keep_plan(run, plan)
    also = asked_for(plan, not_before, limits)
    audit.record(membership, membership.user, "run.launch", run, recipe=run.recipe, name=str(run), **also)
    enqueue("workers.runs.launch", run.id)
    run.refresh_from_db(from_queryset=Run.objects.with_names())
    broadcasts.run_changed(run)
    return run


def numbered(membership: Membership, title: str) -> dict[str, Any]:
    """The experiment of this name and the next number in it, as columns of a run. The experiment is made if it does not exist, and stays
    locked until the transaction ends: two launches at once must not take the same number."""
    row, _ = Experiment.objects.get_or_create(workspace=membership.workspace, name=title)
    Experiment.objects.select_for_update().get(id=row.id)
    return {"experiment": row, "number": (row.runs.aggregate(last=Max("number"))["last"] or 0) + 1}


def of_plan(membership: Membership, plan: checks.RunPlan, version: DatasetVersion) -> dict[str, Any]:
    """The columns of a run that its plan decides."""
    return {
        "config": plan.config,
        "dataset_version": version,
        "model": plan.model,
        "graded_in": human_grades.chosen(membership.workspace_id, plan.config),
        "steps_total": plan.steps,
        "memory_needed": plan.memory,
    }


def asked_for(plan: checks.RunPlan, not_before: datetime | None, limits: RunLimits) -> dict[str, Any]:
    """The details of a launch in the audit log, besides its name and recipe."""
    also: dict[str, Any] = {"aliases": plan.aliases} if plan.aliases else {}
    also |= {"not_before": not_before.isoformat()} if not_before else {}
    return also | ({"limits": limits.json()} if limits else {})


def keep_plan(run: Run, plan: checks.RunPlan) -> None:
    """Keeps what the plan says besides the columns: its slots and, in the log, its warning."""
    if plan.warning:
        told = {"level": "warning", "message": f"{plan.warning}."}
        LogLine.objects.create(run=run, time=timezone.now(), step=run.step, **told)
    RunSlot.objects.bulk_create(
        RunSlot(run=run, role=slot.role, path=slot.path, model=slot.model, judge=slot.judge) for slot in plan.slots
    )


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
    not_before: datetime | None = None,
    retries: int | None = None,
    limits: RunLimits = NONE,
) -> Run:
    """Runs `run` again with changes: `overrides` is laid over its config; the other values stay as they were.

    With `start_step` the new run continues from that checkpoint of `run`. Raises Conflict if it keeps none of that step.
    """
    return launch(
        membership,
        recipe=run.recipe,
        config=merged(named_rows.config_today(run), overrides),
        dataset=dataset or checks.DatasetChoice(id=run.data.dataset_id, version=run.data.number),
        model=model,
        experiment=experiment or run.experiment.name,
        name=name,
        forked_from=run,
        start_step=start_step,
        key=key,
        not_before=not_before,
        retries=run.retries if retries is None else retries,
        limits=limits,
    )


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
