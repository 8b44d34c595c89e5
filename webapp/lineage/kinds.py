"""The kinds of rows in a lineage: which rows of a kind a workspace has, what they are called, and which page shows them."""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any
from urllib.parse import urlencode

from django.db.models import Model, QuerySet
from django.http import Http404
from django.urls import reverse

from webapp.accounts.access import at_least
from webapp.accounts.models import Membership, Role, User
from webapp.annotation.access import may_name
from webapp.annotation.models import Answer, Guidelines, Project, Publication
from webapp.datasets.models import DatasetVersion, Example
from webapp.evaluation.models import Evaluation
from webapp.experiments.models import ClaimStudy, Rollout, Run
from webapp.inference.models import RegisteredModel
from webapp.judging.models import JudgeVersion
from webapp.reports.models import ReportPage
from webapp.weights.models import WeightsJob

Rows = QuerySet[Any]


@dataclass(frozen=True)
class LineageKind:
    """`rows`: those of a workspace. `made`: it is made again if what it rests on is withdrawn."""

    name: str
    title: str
    one: str
    icon: str
    rows: Callable[[int], Rows]
    address: Callable[[Any], str]
    label: Callable[[Any], str] = str
    made: bool = True


def _people(workspace_id: int) -> Rows:
    """The people who take part in the workspace's projects, members still or not."""
    return User.objects.filter(participations__project__workspace_id=workspace_id).distinct()


def _page(name: str, *fields: str) -> Callable[[Any], str]:
    return lambda row: reverse(name, args=[getattr(row, field) for field in fields])


def _of_rollout(row: Rollout) -> str:
    """The rollouts of its prompt in its step."""
    asked = {"step": row.step, "phase": row.phase, "group": row.group}
    return f"{reverse('run_tab', args=[row.run_id, 'rollouts'])}?{urlencode(asked)}"


KINDS = {
    each.name: each
    for each in (
        LineageKind("person", "People", "person", "users", _people, lambda row: "", str, made=False),
        LineageKind(
            "guidelines",
            "Guidelines",
            "version of guidelines",
            "book-open",
            lambda pk: Guidelines.objects.filter(project__workspace_id=pk).select_related("project"),
            _page("project", "project_id"),
            lambda row: f"{row.project.name}: guidelines v{row.number}",
            made=False,
        ),
        LineageKind(
            "answer",
            "Answers",
            "answer",
            "pencil",
            lambda pk: Answer.objects.filter(project__workspace_id=pk).select_related("project", "assignment"),
            lambda row: reverse("review_task", args=[row.project_id, row.assignment.task_id]),
            lambda row: f"{row.project.name}: answer {row.pk}",
            made=False,
        ),
        LineageKind(
            "example",
            "Examples",
            "example",
            "list",
            lambda pk: Example.objects.filter(dataset__workspace_id=pk).select_related("dataset").defer("canonical"),
            _page("example", "pk"),
            lambda row: f"{row.dataset.name}: {row.key}",
            made=False,
        ),
        LineageKind(
            "project",
            "Annotation projects",
            "annotation project",
            "pencil",
            lambda pk: Project.objects.filter(workspace_id=pk),
            _page("project", "pk"),
            made=False,
        ),
        LineageKind(
            "publication",
            "Publications",
            "publication",
            "upload",
            lambda pk: Publication.objects.filter(project__workspace_id=pk).select_related(
                "project", "version__dataset"
            ),
            _page("project", "project_id"),
            lambda row: f"{row.project.name} as {row.version}",
        ),
        LineageKind(
            "version",
            "Dataset versions",
            "dataset version",
            "database",
            lambda pk: DatasetVersion.objects.filter(dataset__workspace_id=pk).select_related("dataset"),
            _page("dataset_version", "dataset_id", "number"),
        ),
        LineageKind(
            "judge",
            "Judges",
            "version of a judge",
            "scale",
            lambda pk: JudgeVersion.objects.filter(judge__workspace_id=pk).select_related("judge"),
            _page("judge_version", "judge_id", "number"),
        ),
        LineageKind(
            "job",
            "Jobs",
            "job with weights",
            "layers",
            lambda pk: WeightsJob.objects.filter(workspace_id=pk),
            _page("weights_job", "pk"),
        ),
        LineageKind(
            "run",
            "Runs",
            "run",
            "flask-conical",
            lambda pk: Run.objects.filter(experiment__workspace_id=pk).select_related("experiment").defer("config"),
            _page("run", "pk"),
            lambda row: f"{row.experiment.name}: {row}",
        ),
        LineageKind(
            "model",
            "Models",
            "model",
            "box",
            lambda pk: RegisteredModel.objects.filter(workspace_id=pk),
            _page("model", "pk"),
        ),
        LineageKind(
            "evaluation",
            "Evaluations",
            "evaluation",
            "clipboard-check",
            lambda pk: Evaluation.objects.filter(workspace_id=pk).defer("config", "results"),
            _page("evaluation", "pk"),
        ),
        LineageKind(
            "study",
            "Claims put to the test",
            "study of a claim",
            "award",
            lambda pk: ClaimStudy.objects.filter(workspace_id=pk),
            _page("claim_study", "pk"),
            lambda row: f"{row.plan}, study {row.pk}",
        ),
        LineageKind(
            "rollout",
            "Rollouts",
            "rollout",
            "list-checks",
            lambda pk: (
                Rollout.objects.filter(run__experiment__workspace_id=pk)
                .select_related("run__experiment")
                .defer("content", "run__config")
            ),
            _of_rollout,
            lambda row: (
                f"{row.run.experiment.name}: {row.run}, step {row.step}, prompt {row.group + 1}, response {row.index + 1}"
            ),
            made=False,
        ),
        LineageKind(
            "report",
            "Reports",
            "report",
            "file-text",
            lambda pk: ReportPage.objects.filter(workspace_id=pk),
            _page("report", "pk"),
        ),
    )
}


def may_read(membership: Membership) -> Membership:
    return at_least(membership, Role.REVIEWER)


def fetched(membership: Membership, kind: str, row_id: int) -> Model:
    """A row of the caller's workspace, or 404. A person is found only by a reader who may know who people are."""
    may_read(membership)
    if kind not in KINDS or (kind == "person" and not may_name(membership)):
        raise Http404("no such row")
    row: Model | None = KINDS[kind].rows(membership.workspace_id).filter(pk=row_id).first()
    if row is None:
        raise Http404("no such row")
    return row
