"""People's answers in a project, for recipes that compare projects."""

from collections.abc import Iterator

from webapp.annotation.agreement.raters import raters
from webapp.annotation.models import Answer, Project

from ..recipes.base import ProjectAnswer
from .registry import MAX_CHOICES, SOURCES, Options, RowSource


def current_answers(workspace_id: int, project_id: int) -> Iterator[tuple[Answer, str]]:
    """Every answer that stands, oldest first, beside its rater's pseudonym; gold tasks have none of them."""
    known = raters(project_id)
    rows = Answer.objects.filter(
        current=True,
        assignment__state="submitted",
        project_id=project_id,
        project__workspace_id=workspace_id,
        assignment__task__overlap__isnull=False,
    ).select_related("assignment__task__example")
    for row in rows.order_by("id").iterator(chunk_size=500):
        if row.assignment.user_id not in known:  # somebody has joined since the first answer was read
            known = raters(project_id)
        yield row, known[row.assignment.user_id].pseudonym


def answers(workspace_id: int, project_id: int) -> Iterator[ProjectAnswer]:
    """Every answer that stands, in the frame of its task."""
    for row, rater in current_answers(workspace_id, project_id):
        task = row.assignment.task
        texts = {each["id"]: each["text"] for each in task.example.content.get("responses", ())}
        yield ProjectAnswer(task.example.key, task.subject, row.content, rater, row.seconds, texts)


def _options(workspace_id: int, detail: str) -> Options:
    rows = Project.objects.filter(workspace_id=workspace_id, kind=detail).order_by("-id")[:MAX_CHOICES]
    return [(str(row.pk), row.name) for row in rows]


def _problem(workspace_id: int, detail: str, project_id: int) -> str:
    kind = Project.objects.filter(workspace_id=workspace_id, pk=project_id).values_list("kind", flat=True).first()
    if kind is None:
        return "this workspace has no such project"
    return "" if kind == detail else f"is a project of kind {kind}; choose one of kind {detail}"


SOURCES["projects"] = RowSource(_options, _problem)
