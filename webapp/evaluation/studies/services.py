"""Studies with people: the pairs of a RubricBench evaluation, judged by the human rubric or by the model's."""

from collections.abc import Iterator, Sequence
from typing import Any

from django.db import transaction
from django.db.models import QuerySet, Sum

from trainer.contracts import Example
from webapp.accounts.models import Membership
from webapp.annotation.models import Project
from webapp.annotation.projects import services as projects
from webapp.core.problems import Conflict, Invalid
from webapp.core.requests import idempotency
from webapp.datasets.queries import examples_by_key
from webapp.datasets.versions import services as datasets

from ..launch import services
from ..models import Case, Evaluation
from ..recipes.base import StudyJudgement
from ..recipes.rubricbench.study import ARMS, HUMAN, OWN
from ..sources.people import current_answers
from ..sources.registry import SOURCES, Options, RowSource

KIND = "study"  # of the lineage of a study's dataset
GUIDELINES = (
    "Decide which response is better **only by the rubric beside the prompt**, even if you would have looked for something else. "
    "Go through its points one by one. Do not count anything that the rubric does not mention."
)


@transaction.atomic
def make(
    membership: Membership, evaluation: Evaluation, *, name: str, people: int = 1, tags: Sequence[str] = ()
) -> Project:
    """An open project in two arms on the pairs for which the model wrote a rubric: `people` judge each pair in each arm.

    `tags`: only the cases that carry all of them. Raises Invalid at `name`, `people` or `tag`, Conflict if the
    evaluation has no rubrics to compare.
    """
    version = evaluation.dataset_version
    if evaluation.recipe != "rubricbench" or evaluation.state != Evaluation.State.FINISHED or version is None:
        raise Conflict("Only a finished RubricBench evaluation has two rubrics to compare.", code="no_rubrics")
    if not 1 <= people <= 25:
        raise Invalid("The number of people is too small or too large.", {"people": "must be between 1 and 25"})
    own = _own_rubrics(evaluation, tags)
    found = examples_by_key(version, list(own))
    examples = [_studied(example, evaluation, *own[key]) for key, example in found.items()]
    if not examples:
        raise Invalid("There is nothing to compare.", {"tag": "no case with these tags has a rubric of the model"})
    lineage = {"from": "evaluation", "evaluation": evaluation.pk, KIND: True, "version_id": version.pk}
    made = datasets.create_dataset(membership, name, f"Study of evaluation {evaluation.pk}, in two arms")
    listed = datasets.new_version(membership, made, iter(examples), None, lineage)
    project = projects.create(
        membership,
        name=name,
        kind="pairwise",
        dataset=listed,
        overlap=people,
        strategy=Project.Strategy.RANDOM,
        guidelines=GUIDELINES,
    )
    return projects.set_state(membership, project, Project.State.OPEN)


def _own_rubrics(evaluation: Evaluation, tags: Sequence[str]) -> dict[str, tuple[dict[str, Any], list[dict[str, Any]]]]:
    """example key -> (what its case is about, the model's rubric)."""
    rows = Case.objects.filter(evaluation=evaluation, tags__contains=list(tags), values__own__isnull=False)
    cases = rows.order_by("number").values_list("subject", "values__own")
    return {subject["example"]: (subject, own) for subject, own in cases if own}


def _studied(example: Example, evaluation: Evaluation, subject: dict[str, Any], own: list[dict[str, Any]]) -> Example:
    """The example with its pair alone, and both rubrics if the task looks for them."""
    sides = {subject["a"], subject["b"]}
    human = [each.model_dump(mode="json") for each in example.rubric.criteria] if example.rubric else []
    study = {"evaluation": evaluation.pk, "arms": {HUMAN: human, OWN: own}}
    return example.model_copy(
        update={
            "responses": tuple(each for each in example.responses if each.id in sides),
            "preferences": tuple(each for each in example.preferences if {each.a, each.b} == sides),
            "meta": {**example.meta, "study": study},
        }
    )


def studies(evaluation: Evaluation) -> QuerySet[Project]:
    """Made from this evaluation, newest first, with `answered`: how many answers there are."""
    rows = Project.objects.filter(workspace_id=evaluation.workspace_id, version__lineage__evaluation=evaluation.pk)
    rows = rows.filter(**{f"version__lineage__{KIND}": True}).select_related("version__dataset")
    return rows.annotate(answered=Sum("tasks__done")).order_by("-id")


def read(membership: Membership, project: Project, key: str | None = None) -> Evaluation:
    """An evaluation of the study's answers as they are now."""
    return services.create(
        membership,
        recipe="study",
        config={"project": project.pk},
        dataset=project.version,
        name=project.name,
        key=idempotency.key(key, "study", project.pk),
    )


def judgements(workspace_id: int, project_id: int) -> Iterator[StudyJudgement]:
    """Every answer that stands and belongs to an arm, in the frame of its task."""
    for row, rater in current_answers(workspace_id, project_id):
        task = row.assignment.task
        arm = task.subject.get("arm")
        if arm not in ARMS:
            continue
        strength = row.content.get("strength")
        side = None if strength is None else (strength > 0) - (strength < 0)
        rubric = task.example.content["meta"]["study"]["arms"][arm]
        words = tuple(each["text"] for each in rubric)
        yield StudyJudgement(
            task.example.key, task.subject["a"], task.subject["b"], arm, rater, side, row.seconds, words
        )


def _options(workspace_id: int, detail: str) -> Options:
    rows = Project.objects.filter(workspace_id=workspace_id, **{f"version__lineage__{KIND}": True})
    return [(str(row.pk), row.name) for row in rows.order_by("-id")[:200]]


def _problem(workspace_id: int, detail: str, project_id: int) -> str:
    rows = Project.objects.filter(workspace_id=workspace_id, **{f"version__lineage__{KIND}": True})
    return "" if rows.filter(pk=project_id).exists() else "this workspace has no such study"


SOURCES["studies"] = RowSource(_options, _problem)
