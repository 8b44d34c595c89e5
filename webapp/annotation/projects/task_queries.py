"""The tasks of a project as a table, and everything about one task for people who manage or review."""

from typing import Any

from django.db.models import Count, Exists, F, OuterRef, Prefetch, Q, QuerySet, Subquery
from django.db.models.functions import Coalesce

from webapp.core.problems import Invalid

from ..models import Answer, Assignment, Comment, Project, Task

State = Assignment.State
FILTERS = {
    "open": Q(overlap__isnull=False, taken=0),
    "in_work": Q(overlap__isnull=False, completed_at=None, taken__gt=0),
    "complete": Q(overlap__isnull=False, completed_at__isnull=False),
    "gold": Q(overlap=None),
}
LOOKED_FOR = ("skipped", "flagged")  # found through other tables
NAMES = (*FILTERS, *LOOKED_FOR)


def tasks(project: Project, state: str = "", words: str = "", user: int | None = None) -> QuerySet[Task]:
    """Tasks in `state` (one of NAMES, empty for all) whose example's key or prompt contains `words`; with a user, those that they answered.

    Each has `skips` and `remarks`: how often it was skipped, and how many of its comments are not resolved.
    """
    found = Task.objects.filter(project=project)
    if state in FILTERS:
        found = found.filter(FILTERS[state])
    elif state == "skipped":
        found = found.filter(Exists(_skipped()))
    elif state == "flagged":
        found = found.filter(Exists(_remarks()))
    elif state:
        raise Invalid("Unknown state.", {"state": f"must be one of {', '.join(NAMES)}"})
    if words:
        found = found.filter(Q(example__key__icontains=words) | Q(example__excerpt__icontains=words))
    if user is not None:
        mine = Assignment.objects.filter(task=OuterRef("pk"), user_id=user, submitted_at__isnull=False)
        found = found.filter(Exists(mine))
    return found.select_related("example", "resolution").annotate(skips=_count(_skipped()), remarks=_count(_remarks()))


def _skipped() -> QuerySet[Assignment]:
    return Assignment.objects.filter(task=OuterRef("pk"), state=State.SKIPPED)


def _remarks() -> QuerySet[Comment]:
    return Comment.objects.filter(task=OuterRef("pk"), resolved_at=None)


def _count(rows: QuerySet[Any]) -> Coalesce:
    counted = rows.order_by().values("task").annotate(count=Count("pk")).values("count")
    return Coalesce(Subquery(counted), 0)


def counts(project: Project) -> dict[str, int]:
    """The number of tasks that each filter leaves."""
    found = Task.objects.filter(project=project)
    numbers: dict[str, int] = found.aggregate(
        all=Count("pk"), **{name: Count("pk", filter=condition) for name, condition in FILTERS.items()}
    )
    skipped = Assignment.objects.filter(project=project, state=State.SKIPPED)
    numbers["skipped"] = skipped.aggregate(count=Count("task", distinct=True))["count"]
    flagged = Comment.objects.filter(project=project, resolved_at=None)
    numbers["flagged"] = flagged.aggregate(count=Count("task", distinct=True))["count"]
    return numbers


def seats(task: Task) -> list[Assignment]:
    """The people who have had this task, in the order in which they took it; each with `given`, a list of their revisions, newest first."""
    given = Answer.objects.select_related("guidelines").order_by("-revision")
    rows = Assignment.objects.filter(task=task).select_related("user").order_by("id")
    return list(rows.prefetch_related(Prefetch("answers", queryset=given, to_attr="given")))


def comments(task: Task) -> QuerySet[Comment]:
    return task.comments.select_related("author").order_by("id")


def neighbours(task: Task) -> tuple[int | None, int | None]:
    """The ids of the tasks before and after it in the table, which lists them by id."""
    others = Task.objects.filter(project_id=task.project_id).order_by("id").values_list("id", flat=True)
    return others.filter(id__lt=task.pk).last(), others.filter(id__gt=task.pk).first()


def gold(project: Project) -> QuerySet[Task]:
    """Gold tasks, those with most wrong answers first; each has `right` and `given`, counts of its marked answers."""
    standing = Q(assignments__answers__current=True, assignments__answers__gold_right__isnull=False)
    found = Task.objects.filter(project=project, overlap=None).select_related("example")
    counted = found.annotate(
        given=Count("assignments__answers", filter=standing),
        right=Count("assignments__answers", filter=standing & Q(assignments__answers__gold_right=True)),
    )
    return counted.annotate(wrong=F("given") - F("right")).order_by("-wrong", "-given", "id")


def gold_accuracy(project: Project) -> dict[str, int]:
    """`right` of `given` answers to all gold tasks; `waiting` answers are not matched with the known answer yet."""
    found = Answer.objects.filter(project=project, current=True, assignment__task__overlap=None)
    marked = Q(gold_right__isnull=False)
    return found.aggregate(
        given=Count("pk", filter=marked),
        right=Count("pk", filter=Q(gold_right=True)),
        waiting=Count("pk", filter=~marked),
    )
