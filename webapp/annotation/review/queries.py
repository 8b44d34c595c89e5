"""Reads for a reviewer: the tasks, least agreement first, and one task with all its answers."""

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any

from django.db.models import Count, Q, QuerySet

from webapp.annotation import kinds
from webapp.annotation.agreement import consensus
from webapp.annotation.kinds.table import AnswerRow, GivenAnswer
from webapp.annotation.models import Answer, Comment, Project, Resolution, Task, TaskReview
from webapp.annotation.review import consolidation

OPEN = Q(task__resolution=None)
COMPLETE = Q(agreement__isnull=False, task__completed_at__isnull=False)
SHOWN = ("open", "resolved", "unresolved", "all")


@dataclass(frozen=True)
class ListedTask:
    """A task in a list."""

    task: Task
    review: TaskReview | None
    resolution: Resolution | None

    @property
    def excerpt(self) -> str:
        return self.task.example.excerpt or self.task.example.key


@dataclass(frozen=True)
class Opened:
    """One task with the answers that stand, and their rows."""

    task: Task
    settings: kinds.Settings
    example: dict[str, Any]
    answers: list[Answer]
    groups: list[Any] | None
    matcher: str
    rows: list[AnswerRow] = field(default_factory=list)

    @property
    def kind(self) -> str:
        return self.task.project.kind

    @property
    def answered(self) -> list[GivenAnswer]:
        return [GivenAnswer(each.pk, each.content) for each in self.answers]


@dataclass(frozen=True)
class ReviewProgress:
    """The progress of the review: complete tasks by the source of their resolution. `alone` tasks have one answer, which nobody has
    accepted yet; they are not in `to_decide`, because there is nothing to compare."""

    complete: int
    sources: dict[str, int]
    to_decide: int
    waiting: int  # tasks that still lack answers
    alone: int = 0

    @property
    def decided(self) -> int:
        return sum(self.sources.values())


def listed(project: Project, ids: Sequence[int]) -> list[ListedTask]:
    """The tasks with these ids, in the given order, in one query."""
    found = Task.objects.filter(project=project, pk__in=ids).select_related("example", "review", "resolution")
    by_id = {
        task.pk: ListedTask(task, getattr(task, "review", None), getattr(task, "resolution", None)) for task in found
    }
    return [by_id[pk] for pk in ids if pk in by_id]


def complete(project: Project) -> QuerySet[TaskReview]:
    """Reviews of tasks that have all their answers, two or more."""
    return TaskReview.objects.filter(COMPLETE, project=project)


def undecided(project: Project, singles: bool = False) -> QuerySet[TaskReview]:
    """Complete tasks without a resolution; `singles` includes those with only one answer."""
    return (answered(project) if singles else complete(project)).filter(OPEN)


def answered(project: Project) -> QuerySet[TaskReview]:
    """Reviews of tasks that have all their answers, also if that is one."""
    return TaskReview.objects.filter(project=project, task__completed_at__isnull=False).exclude(answers=[])


def undecided_by_project(workspace_id: int, most: int) -> list[dict[str, Any]]:
    """{"project_id", "project__name", "apart", "alike"}: undecided tasks on which people disagree, and agree; the most first."""
    rows = TaskReview.objects.filter(COMPLETE, OPEN, project__workspace_id=workspace_id)
    counted = rows.values("project_id", "project__name").annotate(
        apart=Count("id", filter=Q(agreement__lt=1)), alike=Count("id", filter=Q(agreement__gte=1))
    )
    return [dict(row) for row in counted.order_by("-apart", "-alike")[:most]]


def least_agreement(project: Project, show: str = "open", after: str = "", limit: int = 50) -> tuple[list[int], str]:
    """(task ids, least agreement first and single answers last; the cursor of the next page or ""). An invalid cursor starts from the
    beginning."""
    reviews = _shown(project, show).order_by("agreement", "task_id")
    if place := _place(after):
        agreement, task = place
        behind = Q(agreement=agreement, task_id__gt=task)
        if agreement is not None:
            behind |= Q(agreement__gt=agreement) | Q(agreement=None)
        reviews = reviews.filter(behind)
    rows = list(reviews.values_list("task_id", "agreement")[: limit + 1])
    more = f"{rows[limit - 1][1]!r}_{rows[limit - 1][0]}" if len(rows) > limit else ""
    return [task for task, _ in rows[:limit]], more


def _shown(project: Project, show: str) -> QuerySet[TaskReview]:
    if show == "resolved":
        return answered(project).filter(task__resolution__isnull=False)
    if show == "unresolved":
        return answered(project).filter(task__resolution__source=Resolution.Source.UNRESOLVED)
    return answered(project) if show == "all" else undecided(project)


def _place(cursor: str) -> tuple[float | None, int] | None:
    agreement, _, task = cursor.partition("_")
    try:
        return None if agreement == "None" else float(agreement), int(task[:18])
    except ValueError:
        return None


def neighbour_tasks(task: Task) -> tuple[int | None, int | None]:
    """(the complete task before this one in the order of the list, the next undecided one)."""
    review = TaskReview.objects.filter(task=task, agreement__isnull=False).first()
    if review is None:
        return None, undecided(task.project).order_by("agreement", "task_id").values_list("task_id", flat=True).first()
    behind = Q(agreement__gt=review.agreement) | Q(agreement=review.agreement, task_id__gt=task.pk)
    before = Q(agreement__lt=review.agreement) | Q(agreement=review.agreement, task_id__lt=task.pk)
    following = undecided(task.project).filter(behind).order_by("agreement", "task_id")
    earlier = complete(task.project).filter(before).order_by("-agreement", "-task_id")
    ids = [found.values_list("task_id", flat=True).first() for found in (earlier, following)]
    return ids[0], ids[1]


def review_progress(project: Project) -> ReviewProgress:
    tasks = Task.objects.filter(project=project, overlap__isnull=False)
    counted = tasks.aggregate(complete=Count("id", filter=Q(completed_at__isnull=False)), all=Count("id"))
    rows = Resolution.objects.filter(project=project).values_list("source").annotate(n=Count("id")).order_by()
    sources = dict(rows)
    to_decide, waiting = undecided(project).count(), counted["all"] - counted["complete"]
    alone = undecided(project, singles=True).count() - to_decide
    return ReviewProgress(counted["complete"], sources, to_decide, waiting, alone)


def task_in_review(task: Task) -> Opened:
    """The task with every answer that stands, oldest seat first, and the rows to decide."""
    standing = Answer.objects.filter(assignment__task=task, current=True, assignment__state="submitted")
    answers = list(standing.select_related("assignment", "guidelines").order_by("assignment_id"))
    review = TaskReview.objects.filter(task=task).first()
    settings = kinds.Settings.model_validate(task.project.settings)
    example = task.example.content
    groups, matcher = _groups(task.project.kind, answers, review)
    given = [GivenAnswer(each.pk, each.content) for each in answers]
    rows = consolidation.rows(task.project.kind, settings, task.subject, example, given, groups)
    return Opened(task, settings, example, answers, groups, matcher, rows)


def _groups(kind: str, answers: Sequence[Answer], review: TaskReview | None) -> tuple[list[Any] | None, str]:
    """The stored groups if they were made of these answers, else every item by itself."""
    ids = {each.pk for each in answers}
    if review and review.groups is not None and set(review.answers) == ids:
        return review.groups, review.matcher
    if not kinds.get_kind(kind).items_name:
        return None, ""
    return [[[each.pk, index]] for each in answers for index in range(len(consensus.items(kind, each.content)))], ""


def comments(project: Project, kind: str = "", task: Task | None = None, settled: bool = False) -> QuerySet[Comment]:
    """Remarks, newest first; of one task, or of the whole project."""
    found = Comment.objects.filter(project=project).select_related("author", "task__example").order_by("-id")
    if task is not None:
        return found.filter(task=task)
    found = found if settled else found.filter(resolved_at=None)
    return found.filter(kind=kind) if kind else found
