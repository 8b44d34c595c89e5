"""Drafts: runs that somebody keeps to launch them later. A draft is a row in the state `draft` until it is launched or discarded.

Its config, dataset and model may have problems, which `problems` lists. Everything else of it (name, experiment, time, retries, limits) is
checked when it is saved. It has no dataset, model or slots as rows: nothing that it names is frozen or kept for it before its launch.
"""

import json
from dataclasses import asdict, dataclass, field
from datetime import datetime
from typing import Any

from django.db import IntegrityError, transaction
from django.utils import timezone

from trainer.config import RECIPES, ConfigInvalid, FieldProblem, resolve, upgrade_stored
from webapp.accounts.models import Membership
from webapp.core.auditing import audit
from webapp.core.problems import Conflict, Invalid, Problem
from webapp.core.requests import idempotency
from webapp.core.tasks import enqueue

from .. import names, table_facts
from ..lifecycle import memory_needs, schedule, tokens
from ..lifecycle import retries as trying
from ..lifecycle.limits import NONE, RunLimits
from ..lifecycle.states import State, move
from ..live import broadcasts
from ..models import RETRIES, Artifact, LoggedElsewhere, Run
from ..outputs import starting_points
from . import checks, services

MOST_CONFIG = 200_000  # characters
DEEPEST = 30  # sections and lists within one another


@dataclass(frozen=True)
class RunDraft:
    """A launch that somebody plans for later. `model` replaces the config's `model.name`."""

    recipe: str
    config: dict[str, Any] = field(default_factory=dict)
    dataset: checks.DatasetChoice = field(default_factory=checks.DatasetChoice)
    model: str | None = None
    experiment: str | None = None
    name: str = ""
    forked_from: Run | None = None
    start_step: int = 0
    not_before: datetime | None = None
    retries: int = RETRIES
    limits: RunLimits = NONE


def save(membership: Membership, draft: RunDraft, key: str | None = None) -> Run:
    """Keeps a new draft. The same `key` keeps only one. Raises Invalid with every field of it that is wrong, KeyReused."""
    asked = idempotency.key(key, "draft", *_words(draft))
    if earlier := idempotency.row_of_key(services.runs_of_person(membership), asked):
        return earlier
    columns, title = _columns(membership, draft)
    given = {"launch_key": asked and asked.text, "launch_digest": asked.digest if asked else ""}
    try:
        with transaction.atomic():
            run = Run.objects.create(
                **services.numbered(membership, title),
                **columns,
                **given,
                recipe=draft.recipe,
                forked_from=draft.forked_from,
                start_step=draft.start_step,
                state=State.DRAFT,
                created_by=membership.user,
            )
            keep(membership, run, "run.draft")
    except IntegrityError:  # two requests with one key at the same moment: the other one made it
        if earlier := idempotency.made_meanwhile(Run, membership.user, services.runs_of_person(membership), asked):
            return earlier
        raise
    return run


def change(membership: Membership, run: Run, draft: RunDraft) -> Run:
    """Replaces all that a draft holds, except its recipe and the run from which it continues. The same again changes nothing.

    Raises Invalid with every field that is wrong, Conflict if it was launched or discarded.
    """
    columns, title = _columns(membership, draft)
    with transaction.atomic():
        held = locked(run)
        if held is None:
            raise Conflict("This draft was launched or discarded already.", "not_a_draft")
        if title != held.experiment.name:
            columns |= services.numbered(membership, title)
        if changed := {name: value for name, value in columns.items() if getattr(held, name) != value}:
            Run.objects.filter(pk=run.pk).update(**changed, state_at=timezone.now())
            run.refresh_from_db(from_queryset=Run.objects.with_names())
            keep(membership, run, "run.draft_changed")
    return run


def problems(membership: Membership, run: Run) -> list[FieldProblem]:
    """The problems that keep a draft from being launched as it stands, field by field; empty if nothing does."""
    try:
        _planned(membership, run)
    except ConfigInvalid as error:
        return list(error.problems)
    except Problem as problem:
        told = problem.fields or {"": problem.message}
        return [FieldProblem(path, message) for path, message in told.items()]
    return []


def launch(membership: Membership, run: Run) -> Run:
    """Sends a draft to the line, with the same checks as a launch. A run that was launched already is returned as it is.

    Raises ConfigInvalid or Invalid with every field that is wrong, Conflict. Then it is still a draft.
    """
    if run.is_logged:
        raise LoggedElsewhere
    with transaction.atomic():
        held = locked(run)  # the plan is of the draft that is launched: nobody changes it meanwhile
        if held is None:
            return _fresh(run)
        plan = _planned(membership, held)
        start = _start(held)
        if start:
            starting_points.keep_checkpoint(start)
        version = checks.frozen(membership, plan.version)
        now = timezone.now()
        move(
            held,
            State.QUEUED,
            sources=(State.DRAFT,),
            actor=membership.user,
            reason="Launched from a draft",
            told=services.asked_for(plan, held.not_before, RunLimits.of_run(held)),
            **services.of_plan(membership, plan, version),
            draft=None,
            step=held.start_step,
            token_digest=tokens.digest(held),
            attempt_at=now,
            next_try_at=now,
        )
        table_facts.replace_config(membership.workspace_id, held)
        needed = memory_needs.at_launch(held)
        Run.objects.filter(pk=held.pk).update(family=held.family, memory_needed=needed)
        services.keep_plan(held, plan)
        if start:
            starting_points.adopt(start, held)
        enqueue("workers.runs.launch", held.pk)
    return _fresh(run)


def of_run(run: Run) -> RunDraft:
    """The draft that a row in the state `draft` keeps."""
    return RunDraft(
        recipe=run.recipe,
        config=upgrade_stored(run.recipe, run.config),
        dataset=checks.DatasetChoice(**(run.draft or {})),
        experiment=run.experiment.name,
        name=run.name,
        forked_from=run.forked_from,
        start_step=run.start_step,
        not_before=run.not_before,
        retries=run.retries,
        limits=RunLimits.of_run(run),
    )


def _words(draft: RunDraft) -> list[Any]:
    """The request for which a key stands."""
    given = vars(draft) | {"forked_from": draft.forked_from and draft.forked_from.pk, "limits": draft.limits.json()}
    return [given[name] for name in sorted(given)]


def locked(run: Run) -> Run | None:
    """The draft under its lock; None if it was launched or discarded."""
    rows = Run.objects.with_names().filter(pk=run.pk, state=State.DRAFT)
    return rows.select_for_update(of=("self",), no_key=True).first()


def _fresh(run: Run) -> Run:
    try:
        run.refresh_from_db(from_queryset=Run.objects.with_names())
    except Run.DoesNotExist:
        raise Conflict("This draft was discarded.", "not_a_draft") from None
    return run


def _columns(membership: Membership, draft: RunDraft) -> tuple[dict[str, Any], str]:
    """The columns of a run that a draft decides, and the name of its experiment. Raises Invalid with the fields that a row cannot keep."""
    if draft.recipe not in RECIPES:
        raise Invalid("There is no such recipe.", {"recipe": "is not a recipe"})
    schedule.check(draft.not_before)
    trying.check(draft.retries)
    draft.limits.check(draft.recipe)
    title = names.name(draft.experiment or RECIPES[draft.recipe].title, "experiment")
    config, steps = _config(draft)
    columns = {
        "name": names.optional_name(draft.name, "name"),
        "config": config,
        "steps_total": steps,
        "draft": _named(membership, draft.dataset),
        "not_before": draft.not_before,
        "retries": draft.retries,
        **draft.limits.columns(),
    }
    return columns, title


def _config(draft: RunDraft) -> tuple[dict[str, Any], int]:
    """The config with every default, or as it was written if it has problems, and the steps of the run, 0 if that is not known."""
    config = draft.config
    if draft.model and isinstance(config.get("model", {}), dict):
        config = {**config, "model": {**config.get("model", {}), "name": draft.model}}
    _check_size(config)
    try:
        found = resolve(draft.recipe, config)
    except ConfigInvalid:
        return config, 0
    return found.model_dump(mode="json"), found.steps


def _check_size(config: dict[str, Any]) -> None:
    """Raises Invalid at `config` for what no row can keep."""
    level: list[Any] = [config]
    for _ in range(DEEPEST):
        level = [below for each in level for below in _inside(each)]
    try:
        kept = not level and len(json.dumps(config, allow_nan=False, ensure_ascii=False).encode()) <= MOST_CONFIG
    except ValueError:  # a number that is none, or half of a character
        kept = False
    if not kept:
        told = f"must be JSON of at most {MOST_CONFIG:,} characters and {DEEPEST} levels, with finite numbers"
        raise Invalid("This config cannot be kept.", {"config": told})


def _inside(value: Any) -> list[Any]:
    return list(value.values()) if isinstance(value, dict) else value if isinstance(value, list) else []


def _named(membership: Membership, dataset: checks.DatasetChoice) -> dict[str, Any]:
    """The dataset as the row keeps it: the version that is the newest now, or what was named, if there is none such."""
    version = checks.version_of(membership, dataset)
    return asdict(checks.DatasetChoice(version.dataset_id, version=version.number) if version else dataset)


def _planned(membership: Membership, run: Run) -> checks.RunPlan:
    """Raises ConfigInvalid, Invalid or Conflict if the draft cannot be launched as it stands."""
    draft = of_run(run)
    plan = checks.plan(membership, draft.recipe, draft.config, draft.dataset, None)
    schedule.check(draft.not_before)
    if _start(run) and draft.forked_from:
        checks.continues(plan, draft.forked_from, draft.start_step)
    return plan


def _start(run: Run) -> Artifact | None:
    """The checkpoint from which a draft continues; None if it begins at the beginning. Raises Conflict if there is none any more."""
    if not run.start_step:
        return None
    if run.forked_from is None:
        raise Conflict("The run from whose checkpoint this draft continues was deleted.", "no_checkpoint")
    return starting_points.checkpoint(run.forked_from, run.start_step)


def keep(membership: Membership, run: Run, action: str) -> None:
    """Writes the config into the table of runs and an entry into the audit log, and sends a message to open pages."""
    table_facts.replace_config(membership.workspace_id, run)
    audit.record(membership, membership.user, action, run, recipe=run.recipe, name=str(run))
    run.refresh_from_db(from_queryset=Run.objects.with_names())
    broadcasts.run_changed(run)
