"""The work that waits for one person, and their last submissions: everything that an annotator sees outside the workbench."""

from dataclasses import dataclass
from datetime import datetime

from django.db import connection
from django.db.models import Max, QuerySet

from webapp.accounts.models import Membership

from ..models import Assignment, Participant, Project
from ..tasks import gold_schedule
from ..tasks.eligibility import NOT_MINE

COUNTED = 1_000  # tasks that wait are counted up to this number
HELD = """
    SELECT count(*) FROM annotation_assignment a JOIN annotation_task t ON t.id = a.task_id
    WHERE a.project_id = p.id AND a.user_id = %(user)s AND a.state = 'claimed'
"""
COUNTS = f"""
    SELECT p.id,
        (SELECT count(*) FROM (SELECT 1 FROM annotation_task t WHERE t.project_id = p.id AND t.open AND {NOT_MINE}
            LIMIT %(most)s) free),
        ({HELD}),
        ({HELD} AND a.submitted_at IS NOT NULL),
        ({HELD} AND a.submitted_at IS NULL AND t.overlap IS NULL),
        ({HELD} AND a.sent_back <> ''),
        (SELECT count(*) FROM (SELECT 1 FROM annotation_task t
            WHERE t.project_id = p.id AND t.overlap IS NULL AND p.gold AND {NOT_MINE}
            LIMIT %(most)s) gold)
    FROM unnest(%(projects)s::bigint[], %(gold)s::bool[]) AS p(id, gold)
"""  # noqa: S608  built from constants


@dataclass(frozen=True)
class WaitingProject:
    """A project in which the person takes part. `free` tasks have not been given to them yet, at most COUNTED; the gold tasks that they
    will get are included, so that the number does not reveal them. `held` tasks are begun. Of these, `reopened` have an answer, which `done`
    counts, and a reviewer sent `sent_back` of them back. `gold` counts the gold tasks in `waiting`, for reviewers only, who count tasks
    without them."""

    project: Project
    paused: bool
    done: int
    free: int = 0
    held: int = 0
    sent_back: int = 0
    gold: int = 0
    reopened: int = 0
    last_at: datetime | None = None

    @property
    def waiting(self) -> int:
        """The tasks that the person has not answered, begun ones included: no task is both done and waiting."""
        return self.free + self.held - self.reopened

    @property
    def more(self) -> bool:
        return self.free >= COUNTED

    @property
    def waits(self) -> bool:
        """Whether there is something to do here now."""
        return self.project.state == Project.State.OPEN and not self.paused and bool(self.free or self.held)


def projects_with_work(membership: Membership) -> list[WaitingProject]:
    """The projects of this person in this workspace, those with work first; three queries for any number of projects.

    Drafts of projects are left out, because nobody is asked there yet.
    """
    parts = Participant.objects.filter(user_id=membership.user_id, project__workspace_id=membership.workspace_id)
    listed = list(parts.exclude(project__state=Project.State.DRAFT).select_related("project").order_by("-id")[:100])
    ids = [part.project_id for part in listed]
    counts = _counts(membership.user_id, listed)
    mine = Assignment.objects.filter(user_id=membership.user_id, project_id__in=ids, submitted_at__isnull=False)
    last = dict(mine.values_list("project_id").annotate(last=Max("submitted_at")).order_by())
    found = [
        WaitingProject(part.project, part.paused, part.submitted, *counts[part.project_id], last.get(part.project_id))
        for part in listed
    ]
    return sorted(found, key=lambda each: (not each.waits, -(each.last_at or each.project.created_at).timestamp()))


def count_waiting(user_id: int, project_id: int) -> int | None:
    """The number of tasks of one project that this person has not answered, begun ones included; None if more than COUNTED wait."""
    part = Participant.objects.select_related("project").get(user_id=user_id, project_id=project_id)
    found = WaitingProject(part.project, part.paused, part.submitted, *_counts(user_id, [part])[project_id])
    return None if found.more else found.waiting


def _counts(user_id: int, listed: list[Participant]) -> dict[int, tuple[int, int, int, int, int]]:
    """(free, held, sent_back, gold, reopened) by project, as `WaitingProject` has them."""
    every = {part.project_id: part.project.settings.get("gold_every") for part in listed}
    parts = {part.project_id: part for part in listed}
    gold = [bool(each) for each in every.values()]
    told: dict[str, int | list[int] | list[bool]] = {
        "user": user_id,
        "most": COUNTED,
        "projects": list(every),
        "gold": gold,
    }
    found = {}
    with connection.cursor() as cursor:
        cursor.execute(COUNTS, told)
        for project, free, held, reopened, held_gold, back, unmet in cursor.fetchall():
            due = gold_schedule.to_come(parts[project].pk, parts[project].served, every[project], unmet, free)
            found[project] = (min(free + due, COUNTED), held, back, held_gold + due, reopened)
    return found


def last_submissions(membership: Membership) -> QuerySet[Assignment]:
    """The person's answers that stand, in all projects of this workspace, newest first."""
    mine = Assignment.objects.filter(
        user_id=membership.user_id, project__workspace_id=membership.workspace_id, submitted_at__isnull=False
    )
    found = mine.select_related("project", "task__example").defer("task__example__canonical", "draft")
    return found.order_by("-submitted_at", "-id")
