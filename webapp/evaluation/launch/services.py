"""Changes that people make to evaluations. Each function checks, changes rows, audits, and tells pages and workers after commit."""

import hashlib
import json
from datetime import datetime
from typing import Any

from django.db import IntegrityError, transaction
from django.db.models import QuerySet
from django.utils import timezone

from trainer.config.errors import ConfigInvalid, FieldProblem
from webapp.accounts.models import Membership
from webapp.core import broadcast
from webapp.core.auditing import audit
from webapp.core.background.jobs import JobKind
from webapp.core.background.priorities import Priority
from webapp.core.database import locks
from webapp.core.forms.model_schemas import schema_of
from webapp.core.problems import Conflict, Invalid
from webapp.core.requests import idempotency
from webapp.core.tasks import enqueue
from webapp.core.text.texts import one_line
from webapp.datasets.models import DatasetVersion
from webapp.datasets.versions import services as datasets
from webapp.webhooks.services import announce
from webapp.weights import line

from .. import queries
from ..models import MAX_NAME, Evaluation, Recording
from ..recipes import RECIPES, resolve
from ..recipes.base import RecipeConfig
from ..sources import answering, judges
from ..sources import registry as sources
from . import made_versions

State = Evaluation.State
# target -> the states it may be reached from by a person
MOVES: dict[str, tuple[str, ...]] = {
    State.PAUSED: (State.QUEUED, State.RUNNING),
    State.QUEUED: (State.PAUSED, State.FAILED),
    State.CANCELLED: (State.QUEUED, State.RUNNING, State.PAUSED),
}
EVALUATION = JobKind(
    Evaluation.objects.select_related("workspace", "dataset_version__dataset", "created_by"),
    locks.Work.EVALUATION,
    "workers.evaluation.run",
    begun={},  # `running.Work.begin` says when
)
OVER = (State.FINISHED, State.FAILED, State.CANCELLED)


def create(
    membership: Membership,
    *,
    recipe: str,
    config: dict[str, Any],
    dataset: DatasetVersion | None = None,
    recording: Recording | None = None,
    name: str = "",
    rerun_of: Evaluation | None = None,
    key: idempotency.Key | None = None,
    asked_at: datetime | None = None,
) -> Evaluation:
    """Makes a queued evaluation, and freezes the version that it reads. A `key` makes only one evaluation.

    Raises ConfigInvalid with every field of config, data and judges that is wrong, Invalid at `name`, KeyReused.
    """
    if earlier := idempotency.row_of_key(_mine(membership), key):
        return earlier
    resolved = plan(membership, recipe, config, dataset, recording)
    stored = resolved.model_dump(mode="json")
    title = usable_name(name or _title(recipe, dataset, recording))
    try:
        with transaction.atomic():
            row = Evaluation.objects.create(
                workspace=membership.workspace,
                name=title,
                recipe=recipe,
                config=stored,
                dataset_version=dataset and datasets.freeze(membership, dataset),
                recording=recording,
                benchmark=benchmark(recipe, resolved, dataset, recording),
                rerun_of=rerun_of,
                launch_key=key and key.text,
                launch_digest=key.digest if key else "",
                created_by=membership.user,
                asked_at=asked_at or timezone.now(),
            )
            audit.record(membership, membership.user, "evaluation.created", row, recipe=recipe, name=title)
            broadcast_evaluation(row)
            enqueue("workers.evaluation.run", row.pk)
    except IntegrityError:  # two requests with one key at the same moment: the other one made it
        if earlier := idempotency.made_meanwhile(Evaluation, membership.user, _mine(membership), key):
            return earlier
        raise
    return row


def _mine(membership: Membership) -> QuerySet[Evaluation]:
    return queries.evaluations(membership.workspace_id).filter(created_by=membership.user)


def plan(
    membership: Membership,
    recipe: str,
    raw: dict[str, Any],
    dataset: DatasetVersion | None,
    recording: Recording | None,
) -> RecipeConfig:
    """The complete config. Raises ConfigInvalid with every field that is wrong; nothing is written."""
    config = resolve(recipe, raw)
    chosen = RECIPES[recipe]
    whole = (membership.workspace_id, schema_of(chosen.schema), config.model_dump(mode="json"))
    found = list(sources.problems(*whole)) or list(config.judge_problems(judges.named(*whole)))
    if chosen.dataset == "must" and dataset is None:
        found.append(FieldProblem("dataset", "choose a dataset"))
    if chosen.recording == "must" and recording is None:
        found.append(FieldProblem("recording", "choose recorded verdicts"))
    if chosen.recording != "no" and recording is not None and recording.kind != chosen.recorded:
        found.append(FieldProblem("recording", f"holds {recording.kind}; {chosen.title!r} reads {chosen.recorded}"))
    if chosen.recording == "no" and recording is not None:
        found.append(FieldProblem("recording", f"{chosen.title!r} does not use recorded verdicts"))
    found += chosen.check(config, dataset is not None, recording is not None)
    found += made_versions.problems(membership, recipe, config)
    if found:
        raise ConfigInvalid(found)
    return config


def benchmark(recipe: str, config: RecipeConfig, dataset: DatasetVersion | None, recording: Recording | None) -> str:
    """The address of what stays the same while judges or models are compared: recipe, data, settings. Recorded scores belong to what is
    compared."""
    pairs = None if RECIPES[recipe].recorded == "scores" else recording and recording.pairs_digest
    frozen = config.model_dump(mode="json", exclude={*config.tried, *config.spared})
    data = {"dataset": dataset and dataset.digest, "pairs": pairs}
    text = json.dumps([recipe, frozen, data], sort_keys=True)
    return hashlib.sha256(text.encode()).hexdigest()


def move(membership: Membership, evaluation: Evaluation, to: str) -> Evaluation:
    """Pauses, resumes (`queued`) or cancels. A request for its present state changes nothing. Raises Conflict if the state cannot be
    reached."""
    if to not in MOVES:
        raise Invalid("Unknown state.", {"state": f"must be one of {', '.join(MOVES)}"})
    with transaction.atomic():
        if to != State.QUEUED:
            line.lock()  # both this and the line lock several jobs, each in another order
        fields: dict[str, Any] = {"state": to, "seen_at": timezone.now()}
        # an evaluation that paused by itself says why; one that a person pauses no longer says what it waited for
        fields |= {"problem": ""} if to in (State.QUEUED, State.PAUSED) else {}
        fields |= {"ended_at": timezone.now()} if to == State.CANCELLED else {"ended_at": None}
        moved = Evaluation.objects.filter(pk=evaluation.pk, state__in=MOVES[to]).update(**fields)
        before = evaluation.state
        evaluation.refresh_from_db(fields=["state", "problem", "ended_at"])
        if moved:
            audit.record(membership, membership.user, f"evaluation.{to}", evaluation, before=before)
            broadcast_evaluation(evaluation)
            if to == State.CANCELLED:
                facts = queries.facts(evaluation)
                announce(evaluation.workspace_id, "evaluation.cancelled", facts, by=membership.user_id)
            if to == State.QUEUED:
                enqueue("workers.evaluation.run", evaluation.pk)
            else:
                answering.stop_jobs(evaluation)
        elif evaluation.state != to and not (to == State.QUEUED and evaluation.state == State.RUNNING):
            raise Conflict(f"An evaluation that is {evaluation.state} cannot become {to}.", code="no_such_move")
    return evaluation


def prioritise(membership: Membership, evaluation: Evaluation, priority: Priority) -> Evaluation:
    """Sets the priority of its jobs among the workspace's work in the line. The same priority again changes nothing. Raises Conflict if the
    evaluation is over."""
    with transaction.atomic():
        open_rows = Evaluation.objects.filter(pk=evaluation.pk).exclude(state__in=OVER)
        if open_rows.exclude(priority=priority).update(priority=priority):
            told = priority.label.lower()
            audit.record(membership, membership.user, "evaluation.priority", evaluation, priority=told)
        elif not open_rows.exists():
            raise Conflict("The evaluation is over, so it waits for nothing.", code="over")
    evaluation.refresh_from_db(fields=["priority"])
    answering.prioritise(evaluation, membership.user)
    return evaluation


@transaction.atomic
def rename(membership: Membership, evaluation: Evaluation, name: str) -> Evaluation:
    """Renames the evaluation. Raises Invalid at `name`."""
    evaluation.name = usable_name(name)
    evaluation.save(update_fields=["name"])
    audit.record(membership, membership.user, "evaluation.renamed", evaluation, name=evaluation.name)
    return evaluation


@transaction.atomic
def delete(membership: Membership, evaluation: Evaluation) -> None:
    """Removes the evaluation with its cases. Verdicts stay in their store. Raises Conflict while it is under way."""
    if not Evaluation.objects.select_for_update().filter(pk=evaluation.pk, state__in=OVER).exists():
        raise Conflict("The evaluation is still under way. Cancel it first.", code="under_way")
    audit.record(membership, membership.user, "evaluation.deleted", evaluation, name=evaluation.name)
    evaluation.delete()


def rerun(
    membership: Membership, evaluation: Evaluation, key: str | None = None, *, resample: bool = False
) -> Evaluation:
    """Runs the stored config again. Judges' stored answers are used.

    With `resample` judges are asked again: with samples that no evaluation of the same benchmark has used. The earlier ones are kept.
    Raises KeyReused if the key came with another request.
    """
    return create(
        membership,
        recipe=evaluation.recipe,
        config={**evaluation.config, "draw": queries.last_draw(evaluation) + 1} if resample else evaluation.config,
        dataset=evaluation.dataset_version,
        recording=evaluation.recording,
        name=evaluation.name,
        rerun_of=evaluation,
        key=idempotency.key(key, "rerun", evaluation.pk, resample),
    )


def broadcast_evaluation(evaluation: Evaluation) -> None:
    """Tells open pages of a new state or progress; they load the results themselves."""
    message: dict[str, object] = {
        "type": "evaluation",
        "id": evaluation.pk,
        "state": evaluation.state,
        "progress": evaluation.progress,
    }
    broadcast.send(f"workspace.{evaluation.workspace_id}", message)


def _title(recipe: str, dataset: DatasetVersion | None, recording: Recording | None) -> str:
    about = dataset.dataset.name if dataset else recording.name if recording else ""
    return f"{RECIPES[recipe].title}{' · ' if about else ''}{about}"[:MAX_NAME]


def usable_name(text: str) -> str:
    """A name without extra spaces. Raises Invalid at `name`."""
    return one_line(text, MAX_NAME, "The name cannot be used.")
