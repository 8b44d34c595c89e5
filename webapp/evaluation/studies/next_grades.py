"""The responses that people should grade next, so that they correct a judge's scores to a wanted interval: made into tasks once,
and read by the evaluation that corrects again."""

from dataclasses import dataclass
from typing import Any

from django.db import transaction
from django.db.models import QuerySet
from django.http import Http404

from trainer.contracts import Example
from trainer.contracts.plurals import with_noun
from webapp.accounts.models import Membership
from webapp.annotation import kinds
from webapp.annotation.models import Project
from webapp.annotation.projects import services as projects
from webapp.annotation.queries import progress
from webapp.core.problems import Conflict, Invalid
from webapp.core.requests import idempotency
from webapp.datasets.models import DatasetVersion
from webapp.datasets.versions import services as datasets

from ..launch import services
from ..models import MAX_NAME, Case, Evaluation
from ..recipes.policies.corrected import CORRECTED, NEXT, TITLE, TO_GRADE, place
from . import tasks

KIND = "next_grades"  # of the lineage of the dataset that is made
GUIDELINES = (
    "Say for each criterion whether the answer meets it. A judge has graded the same answers, and your grades show how far it "
    "is right. You do not see its verdicts, so that you decide on your own."
)
ROOM = 30  # characters that a name keeps for what distinguishes it


@dataclass(frozen=True)
class NextGrades:
    """The grades that people should give for an interval of plus or minus `half_width`. `first`: nobody can say yet what it takes, and this
    many lead to an interval. `why`: why there is nothing to make tasks of; empty if there is something."""

    half_width: float
    prompts: int
    responses: int
    first: bool
    why: str

    @property
    def width(self) -> str:
        return f"{self.half_width:.1%}"


def needed(evaluation: Evaluation) -> NextGrades | None:
    """None if the evaluation has no score that people correct."""
    blocks = (evaluation.results or {}).get("blocks", ())
    block = next((each for each in blocks if each["title"] == TITLE), None)
    if block is None or evaluation.state != Evaluation.State.FINISHED:
        return None
    drawn = set(_marked(evaluation).values_list("subject__example", "subject__response"))
    first = any(row[CORRECTED].get("low") is None and row[TO_GRADE].get("value") for row in block["rows"])
    half_width = evaluation.config["half_width"]
    return NextGrades(
        half_width, len({key for key, _ in drawn}), len(drawn), first, _why(evaluation, block, bool(drawn))
    )


def _marked(evaluation: Evaluation) -> QuerySet[Case]:
    return Case.objects.filter(evaluation=evaluation, tags__contains=[NEXT])


def _why(evaluation: Evaluation, block: dict[str, Any], drawn: bool) -> str:
    if drawn and evaluation.dataset_version_id is None:
        return "This evaluation has no dataset, so there are no texts to ask people about."
    if drawn:
        return ""
    if any(row[TO_GRADE].get("value") is None for row in block["rows"]):
        return "Grades of all prompts would not be enough for this interval. Run the evaluation again with a larger “half width”."
    if any(row[CORRECTED].get("low") is None for row in block["rows"]):
        return "No prompt is left that people could grade."
    return "The interval is as narrow as it should be, so nobody needs to grade more."


@dataclass(frozen=True)
class GradingSoFar:
    """The progress of people's grades, which correct the score of the evaluation. `complete` of `tasks` have all their answers; `published`:
    the newest version with the answers; `corrected`: the newest evaluation that reads it."""

    need: NextGrades
    project: Project | None = None
    tasks: int = 0
    complete: int = 0
    published: DatasetVersion | None = None
    corrected: Evaluation | None = None


def grading(evaluation: Evaluation) -> GradingSoFar | None:
    """None if the evaluation has no score that people correct."""
    if (need := needed(evaluation)) is None:
        return None
    if (project := project_of(evaluation)) is None:
        return GradingSoFar(need)
    far = progress(project)
    newest = project.publications.select_related("version__dataset").order_by("-id").first()
    reads = {"graded": [{"dataset": project.version.dataset_id}]}
    corrected = Evaluation.objects.filter(rerun_of=evaluation, config__contains=reads).order_by("-id").first()
    return GradingSoFar(need, project, far.tasks, far.complete, newest.version if newest else None, corrected)


def project_of(evaluation: Evaluation) -> Project | None:
    """The project that grades them."""
    rows = Project.objects.filter(workspace_id=evaluation.workspace_id, version__lineage__evaluation=evaluation.pk)
    return rows.filter(**{f"version__lineage__{KIND}": True}).select_related("version__dataset").order_by("id").first()


@transaction.atomic
def make(membership: Membership, evaluation: Evaluation, *, name: str = "", overlap: int = 1) -> tuple[Project, bool]:
    """An open project that asks `overlap` people about each of these responses, and whether it was made now: one evaluation has one.

    Raises Conflict if there is nothing to grade or if some of it cannot be graded, Invalid at `name` or `overlap`.
    """
    # two clicks, or two tabs, take turns: the second finds what the first has made
    row = Evaluation.objects.select_for_update(no_key=True).filter(pk=evaluation.pk).first()
    if row is None:
        raise Http404("no such evaluation")
    if before := project_of(row):
        return before, False
    return _begun(membership, row, _examples(row), name, overlap), True


def not_corrected() -> Conflict:
    return Conflict("Only a finished evaluation with a judge has a score that people correct.", code="not_corrected")


def _examples(evaluation: Evaluation) -> list[Example]:
    """Prompts in the order of the draw: any part of them that people finish is a random part of all prompts."""
    need, version = needed(evaluation), evaluation.dataset_version
    if need is None:
        raise not_corrected()
    if need.why or version is None:
        raise Conflict(need.why, code="nothing_to_grade")
    try:
        found = tasks.examples_of(evaluation, version, [NEXT], "grading")
    except Invalid as problem:  # the caller has named no tag
        raise Conflict(f"{problem.message} {'; '.join(problem.fields.values())}.", code="too_many") from problem
    _all_gradable(evaluation, found)
    return sorted(found, key=lambda each: place(each.key))


def _all_gradable(evaluation: Evaluation, found: list[Example]) -> None:
    """Checks that all can be graded by the rubric that gave the judge's score. A part of the draw would not be a random one, and would not
    lead to the interval."""
    drawn = {
        (subject["example"], subject["response"]): {each["text"] for each in values["criteria"]}
        for subject, values in _marked(evaluation).values_list("subject", "values")
    }
    known = {
        (each.key, response.id): {criterion.text for criterion in each.rubric.criteria}
        for each in found
        if each.rubric
        for response in each.responses
    }
    lost = sum(criteria != known.get(about) for about, criteria in drawn.items())
    if lost:
        raise Conflict(
            f"Of {with_noun(len(drawn), 'responses')}, {lost:,} cannot be graded: the dataset does not have their prompt with the "
            "rubric by which they were scored. The others alone would not be a random part.",
            code="not_gradable",
        )


def _begun(membership: Membership, evaluation: Evaluation, examples: list[Example], name: str, overlap: int) -> Project:
    name = name or f"{evaluation.name[: MAX_NAME - ROOM]} · grades {evaluation.pk}"
    lineage = {"from": "evaluation", "evaluation": evaluation.pk, "tags": [NEXT], KIND: True}
    lineage["version_id"] = evaluation.dataset_version_id
    dataset = datasets.create_dataset(membership, name, f"What evaluation {evaluation.pk} needs people to grade")
    version = datasets.new_version(membership, dataset, iter(examples), None, lineage)
    project = projects.create(
        membership,
        name=name,
        kind="grading",
        dataset=version,
        overlap=overlap,
        # a grade by one person counts, and so do criteria on which people differ: the resolved judgements would leave both out
        settings=kinds.Settings(publish="answers").model_dump(mode="json"),
        guidelines=GUIDELINES,
    )
    return projects.set_state(membership, project, Project.State.OPEN)


def correct(membership: Membership, evaluation: Evaluation, key: str | None = None) -> Evaluation:
    """The evaluation again, with what people have graded since. The judge is not asked again. Raises Conflict before it is published."""
    project = project_of(evaluation)
    if project is None or not project.publications.exists():
        raise Conflict("The grades are not published yet.", code="not_published")
    graded = [*evaluation.config["graded"]]
    if not any(each["dataset"] == project.version.dataset_id for each in graded):
        graded.append({"dataset": project.version.dataset_id})
    return services.create(
        membership,
        recipe=evaluation.recipe,
        config={**evaluation.config, "graded": graded},
        dataset=evaluation.dataset_version,
        recording=evaluation.recording,
        name=evaluation.name,
        rerun_of=evaluation,
        key=idempotency.key(key, "correct", evaluation.pk),
    )
