"""Makes the tasks of a project from its dataset version, and turns some of them into gold tasks."""

import json
import logging
from collections.abc import Iterator, Sequence
from datetime import timedelta
from itertools import islice
from typing import Any

from django.db import connection, transaction
from django.utils import timezone
from pydantic import ValidationError

from webapp.accounts.models import Membership
from webapp.annotation import kinds
from webapp.annotation.models import Answer, Assignment, Project, Task
from webapp.annotation.tasks import answer_checks, blinding, gold_answers, task_factory
from webapp.core.auditing import audit
from webapp.core.database import locks
from webapp.core.problems import Invalid
from webapp.core.tasks import enqueue, silent
from webapp.datasets.models import VersionMember

from ..agreement import matching
from ..agreement.refresh import review_again
from ..tasks.seats import as_json

logger = logging.getLogger(__name__)
BATCH = 2_000  # tasks per statement and commit
READ = 500  # examples read at a time: memory stays flat for any size of the version
LOST_AFTER = timedelta(minutes=2)
INSERT = """
    INSERT INTO annotation_task (project_id, example_id, subject, rank, overlap, taken, done)
    SELECT %s, example, subject::jsonb, rank, %s, 0, 0
    FROM unnest(%s::bigint[], %s::text[], %s::float8[]) AS made(example, subject, rank)
    ON CONFLICT (project_id, example_id, subject) DO NOTHING
"""
Made = tuple[int, dict[str, Any], float]


def make(project_id: int) -> None:
    """Writes the project's tasks as `task_factory.subjects_of` says, ranked by its strategy.

    Streams the version and commits batch by batch. After an interruption it simply runs again: a task that exists stays as it is. One
    worker at a time; a second one returns at once. If it fails, the project says why until it succeeds.
    """
    with locks.exclusive(locks.Work.TASKS, project_id) as ours:
        project = Project.objects.filter(id=project_id).select_related("workspace", "version").first()
        if not ours or project is None or project.tasks_made:
            return
        try:
            tasks = _made(project)
            while batch := list(islice(tasks, BATCH)):
                _insert(project, batch)
            _finish(project)
        except Exception as error:
            problem = f"{type(error).__name__}: {error}"[:500].replace("\0", "␀")
            Project.objects.filter(id=project_id).update(tasks_problem=problem)
            raise
        with connection.cursor() as cursor:  # claims begin at once and need a plan for a table of this size
            cursor.execute("ANALYZE annotation_task")


def make_waiting() -> int:
    """Queues again the projects whose tasks nobody makes, because their message or their worker was lost."""
    waiting = Project.objects.filter(silent("created_at", LOST_AFTER), tasks_made=False)
    ids = list(waiting.values_list("id", flat=True))
    for project_id in ids:
        enqueue("workers.annotation.make_tasks", project_id)
    return len(ids)


def _made(project: Project) -> Iterator[Made]:
    """(example, subject, rank) of each task, in the version's order."""
    for position, example_id, canonical in _members(project.version_id):
        content = json.loads(canonical)
        for index, subject in enumerate(task_factory.subjects_of(project.kind, content)):
            yield (
                example_id,
                subject,
                task_factory.rank(project.strategy, project.pk, (position, index), subject, content),
            )


def _members(version_id: int) -> Iterator[tuple[int, int, str]]:
    members, after = VersionMember.objects.filter(version_id=version_id).order_by("position"), -1
    columns = ("position", "example_id", "example__canonical")
    while rows := list(members.filter(position__gt=after).values_list(*columns)[:READ]):
        yield from rows
        after = rows[-1][0]


def _insert(project: Project, batch: list[Made]) -> None:
    examples, found, ranks = zip(*batch, strict=True)
    values: list[Any] = [
        project.pk,
        project.overlap,
        list(examples),
        [as_json(subject) for subject in found],
        list(ranks),
    ]
    with transaction.atomic(), connection.cursor() as cursor:
        cursor.execute(INSERT, values)
        Project.objects.filter(id=project.pk).update(tasks_total=_total(project))


def add(project: Project, example_id: int, subject: dict[str, Any], rank: float) -> Task:
    """Makes one more task, or returns the one that asks the same already."""
    _insert(project, [(example_id, subject, rank)])
    return Task.objects.get(project=project, example_id=example_id, subject=subject)


def add_all(project: Project, made: Sequence[Made]) -> None:
    """Makes tasks of a project that has its others already; those that ask the same as one of them are not made."""
    for start in range(0, len(made), BATCH):
        _insert(project, list(made[start : start + BATCH]))


def _total(project: Project) -> int:
    return Task.objects.filter(project=project, overlap__isnull=False).count()


@transaction.atomic
def _finish(project: Project) -> None:
    """Stores the number of examples that gave no task. This is not an error, but it must not be hidden."""
    total = _total(project)
    Project.objects.filter(id=project.pk).update(tasks_total=total, tasks_made=True, tasks_problem="")
    used = Task.objects.filter(project=project).values("example").distinct().count()
    unused = VersionMember.objects.filter(version_id=project.version_id).count() - used
    audit.record(project.workspace, None, "project.tasks_made", project, tasks=total, examples_without=unused)


def set_gold(membership: Membership, task: Task, content: dict[str, Any] | None) -> Task:
    """Gives the task a known answer, in the subject's frame (ids of responses, not letters), or takes it away.

    A gold task has no seats: everybody gets it. Its existing answers are compared with the known one. Without a known answer it becomes a
    task with seats again: as many as people have it, if those are more than the project's overlap. Raises Invalid at `content.*`.
    """
    return set_gold_of(membership, task.project, [(task, content)])[0]


@transaction.atomic
def set_gold_of(
    membership: Membership, project: Project, contents: Sequence[tuple[Task, dict[str, Any] | None]]
) -> list[Task]:
    """`set_gold` for many tasks of a project, each with its `example` and `project` in place: all of them or none."""
    settings = kinds.Settings.model_validate(project.settings)
    known = {task.pk: None if content is None else known_answer(task, settings, content) for task, content in contents}
    # the full lock: gold seats are taken under a key-share lock, which a weaker lock would allow
    rows = list(Task.objects.select_for_update().filter(id__in=known).order_by("id"))
    for row in rows:
        row.gold = known[row.pk]
        if row.gold is None:
            _seated(row, project)
        else:
            row.overlap, row.taken, row.done, row.completed_at = None, 0, 0, None
    Task.objects.bulk_update(rows, ["gold", "overlap", "taken", "done", "completed_at"])
    _compare(rows, project.kind, settings)
    review_again(project.pk, [row.pk for row in rows if row.gold is None])  # gold tasks have no review
    if project.kind in gold_answers.MATCHED:
        matching.ask(project)
    Project.objects.filter(id=project.pk).update(tasks_total=_total(project))
    for action, taken in (("task.gold_set", False), ("task.gold_removed", True)):
        changed = [row for row in rows if (row.gold is None) == taken]
        audit.record_all(membership, membership.user, action, changed, project=project.pk)
    return rows


def known_answer(task: Task, settings: kinds.Settings, content: dict[str, Any]) -> dict[str, Any]:
    """The known answer, checked like a person's answer, with the sides in the subject's order. Raises Invalid at `content.*`."""
    kind, order = task.project.kind, list(range(len(kinds.subject_sides(task.subject))))
    try:
        record = kinds.get_kind(kind).answer.model_validate(content).model_dump(mode="json")
        given = kinds.to_shown(kind, record, task.subject, order)
    except ValidationError as error:
        raise Invalid(answer_checks.REFUSED, answer_checks.complaints(error)) from error
    except ValueError as error:
        raise Invalid(answer_checks.REFUSED, {"content": str(error)}) from error
    view = blinding.view(kind, settings, task.subject, order, task.example.content, done=False)
    return kinds.to_subject(kind, answer_checks.answer(kind, settings, given, view, gold=True), task.subject, order)


def _seated(row: Task, project: Project) -> None:
    states = list(
        Assignment.objects.filter(task=row, state__in=("claimed", "submitted")).values_list("state", flat=True)
    )
    row.taken, row.done = len(states), states.count(Assignment.State.SUBMITTED)
    row.overlap = max(project.overlap, row.taken)
    row.completed_at = timezone.now() if row.done >= row.overlap else None


def _compare(rows: list[Task], kind: str, settings: kinds.Settings) -> None:
    known = {row.pk: row.gold for row in rows}
    answers = list(Answer.objects.filter(assignment__task__in=rows, current=True).select_related("assignment"))
    for answer in answers:
        expected = known[answer.assignment.task_id]
        answer.gold_right = (
            None if expected is None else gold_answers.is_right(kind, settings, answer.content, expected)
        )
        answer.gold_detail = None
    Answer.objects.bulk_update(answers, ["gold_right", "gold_detail"], batch_size=500)
