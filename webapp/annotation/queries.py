"""Reads of projects: the list, progress, pace, and what needs the manager's attention."""

from collections.abc import Iterable
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Any

from django.db.models import Count, Min, OuterRef, Q, QuerySet, Subquery, Sum
from django.db.models.functions import Coalesce, TruncDay, TruncHour
from django.utils import timezone

from .models import AgreementReport, Answer, Assignment, Comment, Guidelines, Participant, Project, ProjectInvite, Task

RATE_WINDOW = timedelta(days=7)
SHORTEST_WINDOW = timedelta(days=1)  # in less, nobody has seen how many hours of a day people work
CHART_DAYS = 30
SUBMITTED = Assignment.State.SUBMITTED


@dataclass(frozen=True)
class Progress:
    """Tasks and their seats. Gold tasks are not counted, because they are never complete."""

    tasks: int = 0
    complete: int = 0
    in_work: int = 0  # begun by somebody, not complete
    seats: int = 0
    seats_done: int = 0
    gold: int = 0

    @property
    def untouched(self) -> int:
        return self.tasks - self.complete - self.in_work

    @property
    def fraction(self) -> float | None:
        """The share of the seats that are done; None before there are any."""
        return self.seats_done / self.seats if self.seats else None


@dataclass(frozen=True)
class ProjectPace:
    """Answers per day over the last week, and when the last seat is done at this pace; `reason` if one of them is unknown. `answers`: those of
    the last week, on which both rest."""

    per_day: float | None
    finish: datetime | None
    reason: str = ""
    answers: int = 0


@dataclass(frozen=True)
class ProjectRow:
    """A project in a list. `alpha` is Krippendorff's alpha of its first field, as the agreement page last computed it; None if it is
    unknown or undefined."""

    project: Project
    progress: Progress
    people: int
    alpha: float | None = None


def projects(workspace_id: int) -> QuerySet[Project]:
    return Project.objects.filter(workspace_id=workspace_id).select_related("version__dataset", "created_by")


def rows(found: Iterable[Project]) -> list[ProjectRow]:
    """Each project with its progress, people and agreement, in three queries for any number of projects."""
    listed = list(found)
    ids = [project.pk for project in listed]
    far = progress_of(ids)
    counted = Participant.objects.filter(project_id__in=ids, paused=False).values_list("project_id")
    people = dict(counted.annotate(people=Count("id")))
    reports = AgreementReport.objects.filter(project_id__in=ids)
    alphas = dict(reports.values_list("project_id", "body__fields__0__alpha__value"))
    return [
        ProjectRow(project, far.get(project.pk, Progress()), people.get(project.pk, 0), alphas.get(project.pk))
        for project in listed
    ]


def progress_of(project_ids: list[int]) -> dict[int, Progress]:
    counted = Q(overlap__isnull=False)
    found = (
        Task.objects.filter(project_id__in=project_ids)
        .values_list("project_id")  # in the order of the fields of Progress
        .annotate(
            tasks=Count("id", filter=counted),
            complete=Count("id", filter=counted & Q(completed_at__isnull=False)),
            in_work=Count("id", filter=counted & Q(completed_at=None, taken__gt=0)),
            seats=Sum("overlap"),
            seats_done=Sum("done", filter=counted),
            gold=Count("id", filter=Q(overlap=None)),
        )
        .order_by()
    )
    return {project_id: Progress(*(figure or 0 for figure in figures)) for project_id, *figures in found}


def progress(project: Project) -> Progress:
    return progress_of([project.pk]).get(project.pk, Progress())


def pace(project: Project, far: Progress) -> ProjectPace:
    """The pace from the answers of the last week: their number divided by the days since the first of them, from one day on. Gold answers fill
    no seat and do not count."""
    now = timezone.now()
    recent = Assignment.objects.filter(
        project=project, state=SUBMITTED, submitted_at__gte=now - RATE_WINDOW, task__overlap__isnull=False
    ).aggregate(count=Count("id"), first=Min("submitted_at"))
    if not far.tasks:
        return ProjectPace(None, None, "there are no tasks yet")
    if not recent["count"]:
        return ProjectPace(None, None, "nobody has answered in the last week")
    count, elapsed = recent["count"], now - recent["first"]
    per_day = count / (elapsed / timedelta(days=1)) if elapsed >= SHORTEST_WINDOW else None
    left = far.seats - far.seats_done
    if not left:
        return ProjectPace(per_day, None, "every seat is done", count)
    if project.state != Project.State.OPEN:
        return ProjectPace(per_day, None, "known while it is open", count)
    if per_day is None:
        return ProjectPace(None, None, "known after a day of answers", count)
    return ProjectPace(per_day, now + timedelta(days=min(left / per_day, 36_500)), "", count)


def throughput(project: Project) -> list[dict[str, Any]]:
    """`[{"at", "count"}]`: answers per hour for a project's first two days, afterwards per day of the last month."""
    now = timezone.now()
    young = now - project.created_at < timedelta(days=2)
    step = timedelta(hours=1) if young else timedelta(days=1)
    begin = now - (timedelta(hours=48) if young else timedelta(days=CHART_DAYS))
    begin = max(begin, project.created_at)
    begin = begin.replace(minute=0, second=0, microsecond=0) if young else begin.replace(hour=0, minute=0, second=0)
    begin = begin.replace(microsecond=0)
    moment = (TruncHour if young else TruncDay)("submitted_at")
    found = (
        Assignment.objects.filter(project=project, state=SUBMITTED, submitted_at__gte=begin)
        .annotate(at=moment)
        .values("at")
        .annotate(count=Count("id"))
        .order_by("at")
        .values_list("at", "count")
    )
    counts = dict(found)
    points = []
    while begin <= now:
        points.append({"at": begin, "count": counts.get(begin, 0)})  # no submission is a true zero
        begin += step
    return points


def guidelines(project: Project) -> QuerySet[Guidelines]:
    """All versions, newest first; each has `answers`, the number of standing answers given under it."""
    counted = Answer.objects.filter(project=project, guidelines=OuterRef("pk"), current=True).order_by()
    answers = counted.values("guidelines").annotate(count=Count("pk")).values("count")
    found = project.guidelines.select_related("created_by").annotate(answers=Coalesce(Subquery(answers), 0))
    return found.order_by("-number")


def guideline_remarks(project: Project) -> QuerySet[Comment]:
    """Unresolved requests to change the guidelines, newest first."""
    found = Comment.objects.filter(project=project, kind=Comment.Kind.GUIDELINES, resolved_at=None)
    return found.select_related("author", "task__example").order_by("-id")


def invites(project: Project) -> QuerySet[ProjectInvite]:
    """Links that are still open, newest first."""
    live = project.invites.filter(uses_left__gt=0, revoked_at=None, expires_at__gt=timezone.now())
    return live.select_related("created_by").order_by("-id")


def open_comments(project: Project) -> dict[str, int]:
    """The number of unresolved remarks of each kind."""
    found = Comment.objects.filter(project=project, resolved_at=None).values_list("kind")
    return dict(found.annotate(count=Count("id")).order_by())


def open_seats(project: Project) -> int:
    """The number of seats that people have open now."""
    return Assignment.objects.filter(
        project=project, state=Assignment.State.CLAIMED, lease_until__gt=timezone.now()
    ).count()
