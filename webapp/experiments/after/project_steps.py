"""Runs that wait for an annotation project: once it is settled, its answers are published, and a run like an earlier one trains on them.

A project is settled when every task has its answers and every answered task is decided: no disagreement and no single answer waits for a
decision, no job is accepting any, and not every task was left unresolved. Decisions do not count if the project publishes each answer by
itself, as those answers are then published without one. A step is launched under its lock, like those of a chain (`rounds`).
"""

import logging
from functools import partial

from django.db import IntegrityError, transaction
from django.db.models import QuerySet

from trainer.config import RECIPES, resolve, upgrade_stored
from trainer.contracts.plurals import with_noun
from webapp.accounts.models import Membership
from webapp.annotation.agreement.refresh import review_new
from webapp.annotation.jobs import runner
from webapp.annotation.models import Job, Project, Resolution, Task
from webapp.annotation.publishing import services as publish
from webapp.annotation.review import queries as review
from webapp.core.auditing import audit
from webapp.core.problems import Conflict
from webapp.core.requests import idempotency
from webapp.core.tasks import enqueue
from webapp.webhooks.services import announce

from .. import names
from ..launch import named_rows
from ..launch import services as launching
from ..launch.checks import DatasetChoice
from ..models import ChainStep, LoggedElsewhere, Run
from . import rounds
from .services import MOST, end, steps_of_person

TAKE_UP = "workers.after.settled"
State = ChainStep.State
GETS_NO_ANSWERS = {
    Project.State.DRAFT.value: "is not open yet",
    Project.State.PAUSED.value: "is paused",
    Project.State.CLOSED.value: "is closed",
}
ACCEPTING = "majorities and single answers are being accepted in the project's review. It waits until that is done"
NOTHING_DECIDED = (
    "no task has a decision to train on. A task that a reviewer left unresolved is not one: decide a task in the project's review, "
    "or let the project publish each answer by itself"
)
logger = logging.getLogger(__name__)


def add(
    membership: Membership, project: Project, like: Run, experiment: str = "", name: str = "", key: str | None = None
) -> ChainStep:
    """Adds a run with recipe, model and config of `like` that waits for the project. The same `key` adds only one step.

    Its data is not there yet, so it is checked at the launch. Raises ConfigInvalid, Invalid for a name, Conflict, KeyReused.
    """
    if like.not_here or like.recipe not in RECIPES:
        raise like.not_here or LoggedElsewhere
    said = idempotency.key(key, "project", project.pk, like.pk, experiment, name)
    if earlier := idempotency.row_of_key(steps_of_person(membership), said):
        return earlier
    config = resolve(like.recipe, upgrade_stored(like.recipe, like.config)).model_dump(mode="json")
    title = names.name(experiment or like.experiment.name, "experiment")
    asked = {"recipe": like.recipe, "config": config, "experiment": title, "with_output": False, "like": like.pk}
    asked["named_rows"] = named_rows.of_run(like)
    label = names.optional_name(name, "name")
    try:
        with transaction.atomic():
            Project.objects.select_for_update(no_key=True).get(pk=project.pk)  # two at once count one after the other
            if waiting(project).count() >= MOST:
                raise Conflict(f"At most {MOST} runs wait for one project.", "too_many")
            step = ChainStep.objects.create(
                project=project,
                workspace=membership.workspace,
                kind=ChainStep.Kind.RUN,
                name=label,
                asked=asked,
                launch_key=said and said.text,
                launch_digest=said.digest if said else "",
                created_by=membership.user,
            )
            audit.record(
                membership, membership.user, "project.then", project, step=step.pk, then=str(step), like=like.pk
            )
            enqueue(TAKE_UP, project.pk)  # it may be settled by now
    except IntegrityError:  # two requests with one key at the same moment: the other one made it
        if earlier := idempotency.made_meanwhile(ChainStep, membership.user, steps_of_person(membership), said):
            return earlier
        raise
    return step


def steps(project: Project) -> QuerySet[ChainStep]:
    """All that ever waited for the project, newest first."""
    rows = ChainStep.objects.filter(project=project).select_related("run__experiment", "created_by", "project")
    return rows.order_by("-pk")


def waiting(project: Project) -> QuerySet[ChainStep]:
    return ChainStep.objects.filter(project=project, state=State.WAITING)


def why_not(project: Project) -> str:
    """The reason why the project still waits, in words; empty if it is settled. The newest answers are compared first."""
    if not project.tasks_made:
        return "its tasks are not made yet"
    missing = Task.objects.filter(project=project, overlap__isnull=False, completed_at=None).count()
    if missing:
        asks = f", and it {GETS_NO_ANSWERS[project.state]}" if project.state in GETS_NO_ANSWERS else ""
        return f"{with_noun(missing, 'tasks')} still {'lacks' if missing == 1 else 'lack'} answers{asks}"
    if publish.usual(project).what == "answers":
        return ""
    review_new(project)
    return _undecided(project)


def _undecided(project: Project) -> str:
    """The reason why the decisions of a project with all its answers are not complete, so that only a part would be published."""
    if runner.open_one(project, Job.Kind.MAJORITY):  # it commits one batch after the other
        return ACCEPTING
    apart = review.undecided(project).count()
    if apart:
        return f"{with_noun(apart, 'disagreements')} {'waits' if apart == 1 else 'wait'} for a decision in the project's review"
    alone = review.undecided(project, singles=True).count()
    if alone:
        return (
            f"{with_noun(alone, 'single answers')} {'waits' if alone == 1 else 'wait'} for a decision. Accept single answers in the "
            "project's review, or let the project publish each answer by itself"
        )
    # as `publish` chooses: no gold task, and nothing that was left unresolved
    decided = Resolution.objects.filter(task__project=project, task__overlap__isnull=False, content__isnull=False)
    return "" if decided.exists() else NOTHING_DECIDED


def waiting_reason(step: ChainStep, missing: str) -> str:
    """The reason why a step waits, or was never launched. `missing`: `why_not` of its project."""
    if step.state != State.WAITING:
        return "The run was deleted" if step.state == State.LAUNCHED and step.run_id is None else step.reason
    return f"Waits: {missing}" if missing else "The project is settled: it is about to be launched"


def watch() -> None:
    """Hands the projects that are settled to a worker."""
    rows = Project.objects.filter(chain_steps__state=State.WAITING).distinct().order_by("pk")
    for project in rows:
        try:
            if not why_not(project):
                enqueue(TAKE_UP, project.pk)
        except Exception:  # one project must not keep the others waiting
            logger.exception("what waits for project %s could not be looked at; the next round tries again", project.pk)


def take_up(project_id: int) -> None:
    """Launches every step that waits for this project, if it is settled."""
    project = Project.objects.filter(pk=project_id).first()
    if project is None or not waiting(project).exists() or why_not(project):
        return
    for pk in list(waiting(project).order_by("pk").values_list("pk", flat=True)):
        rounds.tried(partial(_launch, project), pk)


@transaction.atomic
def _launch(project: Project, step_id: int) -> None:
    step = waiting(project).select_for_update(of=("self",)).filter(pk=step_id).first()
    if step is not None and not rounds.decide(step, partial(_train, step=step, project=project)):
        _tell_refused(step, project)


def _tell_refused(step: ChainStep, project: Project) -> None:
    told = {"then": str(step), "reason": step.reason}
    audit.record(project.workspace, None, "project.then_refused", project, step=step.pk, **told)
    about = {"project": project.pk, "name": project.name, "chain_step": step.pk, "kind": step.kind}
    announce(project.workspace_id, "project.then_refused", about | told)


def _train(membership: Membership, *, step: ChainStep, project: Project) -> None:
    version = publish.publish(membership, project).version  # of the same answers it makes one version only
    asked = step.asked
    step.run = launching.launch(
        membership,
        recipe=asked["recipe"],
        config=rounds.config_today(step),
        dataset=DatasetChoice(id=version.dataset_id, version=version.number),
        experiment=asked["experiment"],
        name=step.name,
    )


def cancel(membership: Membership, project: Project, step_id: int) -> ChainStep | None:
    """Takes back a step that waits; None if the project has no such step. Twice is harmless; Conflict if it was launched or refused."""
    with transaction.atomic():
        held = ChainStep.objects.select_for_update().filter(project=project, pk=step_id).first()
        if held is None:
            return None
        if held.state == State.WAITING:
            end(held, State.CANCELLED, "", actor=membership.user)
            audit.record(membership, membership.user, "project.then_cancelled", project, step=held.pk, then=str(held))
        elif held.state != State.CANCELLED:
            raise Conflict(f"This step was {held.state}: only one that waits can be cancelled.", "not_waiting")
    return held
