"""Describes the projects behind a version of a dataset for the version's metadata, without names of people."""

from django.db.models import Count, Max, Min, Q

from webapp.datasets.exports.annotated import ANNOTATED, Annotated
from webapp.datasets.models import DatasetVersion

from ..models import Answer, Project


def described(version: DatasetVersion, projects: list[int]) -> list[Annotated]:
    """The projects of the version's workspace that have an answer, in the given order."""
    rows = Project.objects.filter(pk__in=projects, workspace=version.dataset.workspace_id)
    by_id = {row.pk: row for row in rows}
    return [found for each in projects if each in by_id and (found := _one(by_id[each])) is not None]


def _one(project: Project) -> Annotated | None:
    answers = Answer.objects.filter(project=project, current=True, assignment__task__gold__isnull=True)
    each_task = answers.values("assignment__task").annotate(said=Count("pk")).order_by()
    spread = each_task.aggregate(tasks=Count("said"), least=Min("said"), most=Max("said"))
    if not spread["tasks"]:
        return None
    told = answers.aggregate(
        answers=Count("pk"),
        people=Count("assignment__user", distinct=True),
        suggested=Count("pk", filter=Q(suggestion="before")),
        first=Min("submitted_at"),
        last=Max("submitted_at"),
    )
    numbers = answers.exclude(guidelines=None).values_list("guidelines__number", flat=True).distinct()
    models = (
        answers.filter(suggestion="before").exclude(suggested_by="").values_list("suggested_by", flat=True).distinct()
    )
    return Annotated(
        project=project.name,
        kind=project.kind_title,
        guidelines=tuple(sorted(numbers)),
        suggested_by=tuple(sorted(models)),
        **spread,
        **told | {"first": told["first"].date(), "last": told["last"].date()},
    )


ANNOTATED.append(described)
