"""Makes a reward model of people's comparisons in one click: publishes what they chose, and trains on it."""

from dataclasses import dataclass
from typing import Any

from django.db.models import Count

from trainer.config import RECIPES
from trainer.contracts.plurals import with_noun
from webapp.accounts.models import Membership
from webapp.annotation.agreement.refresh import STANDS
from webapp.annotation.kinds import COMPARING
from webapp.annotation.models import Answer, Project
from webapp.annotation.publishing import services as publish
from webapp.core.problems import Conflict
from webapp.datasets.models import DatasetVersion
from webapp.datasets.versions import training_counts
from webapp.inference.models import RegisteredModel

from ..models import Run
from ..recipes import fit
from . import services as launch
from .checks import DatasetChoice

RECIPE = "reward_model"
LEAST = 8
STEPS, BATCH = 40, 4  # enough to learn a first difference, within a few minutes on two cores


@dataclass(frozen=True)
class AnsweredProject:
    """A project whose answers a model can learn from, and how many there are."""

    project: Project
    answers: int


def ready(workspace_id: int) -> list[AnsweredProject]:
    """The workspace's projects with enough answers, most answers first. Gold tasks do not count, because their answer is known."""
    found = (
        Answer.objects.filter(STANDS, project__workspace_id=workspace_id, project__kind__in=COMPARING)
        .filter(assignment__task__overlap__isnull=False)
        .values("project_id")
        .annotate(answers=Count("pk"))
        .filter(answers__gte=LEAST)
        .order_by("-answers", "project_id")
    )
    counts = {row["project_id"]: row["answers"] for row in found}
    projects = Project.objects.in_bulk(list(counts))
    return [AnsweredProject(projects[pk], number) for pk, number in counts.items()]


def train(membership: Membership, project: Project) -> Run:
    """Publishes every person's answers, and starts a reward model on them. A second click gets the run of the first.

    Raises Conflict if there are too few answers, so many that a job must publish them, or no model to begin with, and as `publish` and
    `launch` do.
    """
    answers = next((each.answers for each in ready(project.workspace_id) if each.project.pk == project.pk), 0)
    if answers < LEAST:
        raise Conflict(f"A model needs {LEAST} answers or more. Submit some more first.", "too_few_answers")
    base = _base(membership)
    made = publish.start(membership, project, publish.Choice(what="answers", rest=False))
    if made is None:
        raise Conflict(
            "There are many answers, so a job publishes them. Train on its version when it exists.", "publishing"
        )
    version = made.version
    return launch.launch(
        membership,
        recipe=RECIPE,
        config=_config(version, base),
        dataset=DatasetChoice(id=version.dataset_id, version=version.number),
        experiment=project.name,
        name=f"Reward model of {with_noun(answers, 'answers')}",
        key=f"answers-{project.pk}-{version.pk}",
    )


def _base(membership: Membership) -> str:
    """The newest language model that was registered, not trained here."""
    own = RegisteredModel.objects.filter(
        workspace=membership.workspace, head=RegisteredModel.Head.LM, archived_at__isnull=True
    ).exclude(source=RegisteredModel.Source.RUN)
    found = own.order_by("-id").values_list("name", flat=True).first()
    if found is None:
        raise Conflict("There is no model that a run could begin with. Register one under Models.", "no_model")
    return str(found)


def _config(version: DatasetVersion, base: str) -> dict[str, Any]:
    config: dict[str, Any] = {
        "steps": STEPS,
        "batch_size": BATCH,
        "model": {"name": base},
        "optim": {"schedule": "linear"},
        "evaluation": {"every": STEPS // 4},
    }
    if not fit.fit(RECIPES[RECIPE], training_counts.count_now(version)).held_out:
        config["evaluation"]["max_examples"] = 0
    return config
