"""Seats in the database: the only code that takes, counts and frees them.

The rules that keep the counts exact under any concurrency:

- Code that serves a person or takes their answer first locks their `Participant` row, so that two tabs of one person take turns, and then
  their assignment.
- A seat is taken by a conditional update of its task: the lock reads the row again, so a seat that somebody else took meanwhile is not
  seen as free, and a check constraint enforces it.
- Two arms of a study are two tasks on one example, and nobody takes both, not even after giving a seat back: the statement that takes a
  seat checks the twin, and the participant's lock keeps the twin from being taken meanwhile.
- Locks are taken in the order participant, assignments, tasks (by id), answers. Serving skips locked tasks instead of waiting, because it
  may hold another task already; `take_waiting`, which waits, runs in a transaction of its own.

Statements are written as SQL because this path runs for every answer: the ORM would need twice as many.
"""

import json
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Any

from django.db import connection
from django.db.models import QuerySet
from django.utils import timezone

from webapp.annotation.kinds import Settings
from webapp.annotation.models import Assignment, Guidelines, Participant, Project, Task
from webapp.annotation.tasks.eligibility import NOT_MINE
from webapp.core.database import prepared
from webapp.datasets.models import Example

START = -1.0  # a cursor before the first rank
COUNTED = 50  # tasks that wait for a person are counted up to here
PERSON_COLUMNS = 15

# columns of an assignment with all that is needed to show it; read by `_assignment`
SEAT = """
    a.id, a.task_id, a.project_id, a.user_id, a.state, a."order", a.claimed_at, a.lease_until, a.submitted_at, a.draft,
    a.draft_revision, a.draft_at, a.skip_reason, a.sent_back, a.seconds, a.guidelines_id, g.number,
    t.subject, t.gold, t.overlap, t.rank, t.example_id, e.canonical, t.suggestion
"""
SEATS = """
    annotation_assignment a
    JOIN annotation_task t ON t.id = a.task_id
    JOIN datasets_example e ON e.id = t.example_id
    LEFT JOIN annotation_guidelines g ON g.id = a.guidelines_id
"""
# columns of a participant with the project and its newest guidelines; read by `_place`
PERSON = """
    pa.id, pa.user_id, pa.cursor, pa.served, pa.submitted, pa.paused,
    p.id, p.workspace_id, p.kind, p.state, p.overlap, p.settings, p.tasks_made, n.id, n.number
"""
PEOPLE = """
    annotation_participant pa
    JOIN annotation_project p ON p.id = pa.project_id
    LEFT JOIN LATERAL (
        SELECT id, number FROM annotation_guidelines WHERE project_id = p.id ORDER BY number DESC LIMIT 1
    ) n ON true
"""
PLACE = f"""
    SELECT {PERSON} FROM {PEOPLE}
    WHERE pa.user_id = %(user)s AND p.workspace_id = %(workspace)s AND pa.project_id = %(project)s
    FOR NO KEY UPDATE OF pa
"""  # noqa: S608  built from constants
# `OF pa, a`: locked in this order, read again once they are locked
PLACE_AND_SEAT = f"""
    SELECT {PERSON}, {SEAT} FROM {PEOPLE} CROSS JOIN {SEATS}
    WHERE pa.user_id = %(user)s AND p.workspace_id = %(workspace)s
        AND a.id = %(assignment)s AND a.user_id = %(user)s AND a.project_id = pa.project_id
    FOR NO KEY UPDATE OF pa, a
"""  # noqa: S608
OPEN = f"""
    SELECT {SEAT} FROM {SEATS}
    WHERE a.project_id = %s AND a.user_id = %s AND a.state = 'claimed'
    ORDER BY a.claimed_at, a.id LIMIT %s
"""  # noqa: S608
WAITING = f"""
    SELECT count(*) FROM (
        SELECT 1 FROM annotation_task t
        WHERE t.project_id = %(project)s AND t.open AND t.rank > %(cursor)s AND {NOT_MINE}
        ORDER BY t.rank LIMIT {COUNTED + 1}
    ) waiting
"""  # noqa: S608
GOLD_LEFT = f"""
    SELECT count(*) FROM (
        SELECT 1 FROM annotation_task t
        WHERE t.project_id = %(project)s AND t.overlap IS NULL AND {NOT_MINE}
        LIMIT {COUNTED + 1}
    ) gold
"""  # noqa: S608
# Sides are arranged at random for each person, unless a given text speaks of them ("preference")
TAKE = f"""
    WITH picked AS MATERIALIZED (
        SELECT t.id FROM annotation_task t
        WHERE t.project_id = %(project)s AND {{which}} AND {NOT_MINE}
        ORDER BY t.rank LIMIT {{{{count:d}}}}
        {{lock}}
    ), t AS (
        {{took}}
    ), a AS (
        INSERT INTO annotation_assignment AS mine (task_id, project_id, user_id, guidelines_id, state, "order",
            claimed_at, lease_until, draft_revision, skip_reason, sent_back, seconds)
        SELECT t.id, %(project)s, %(user)s, %(guidelines)s::bigint, 'claimed',
            (SELECT coalesce(jsonb_agg(side ORDER BY CASE WHEN t.subject ? 'preference' THEN side ELSE random() END),
                             '[]')
             FROM generate_series(0, CASE WHEN t.subject ? 'a' THEN 2 WHEN t.subject ? 'response' THEN 1
                                     ELSE coalesce(jsonb_array_length(t.subject -> 'responses'), 0) END - 1) side),
            %(now)s::timestamptz, %(lease)s::timestamptz, 0, '', '', 0
        FROM t ORDER BY t.rank
        ON CONFLICT (task_id, user_id) DO UPDATE
            SET state = 'claimed', claimed_at = %(now)s, lease_until = %(lease)s, guidelines_id = %(guidelines)s
        RETURNING mine.*
    ), moved AS (
        UPDATE annotation_participant
        SET served = served + (SELECT count(*) FROM t), cursor = {{cursor}}
        WHERE id = %(participant)s AND EXISTS (SELECT 1 FROM t)
    )
    SELECT {SEAT.replace("g.number", "%(number)s::int")}, ({WAITING})
    FROM a JOIN t ON t.id = a.task_id JOIN datasets_example e ON e.id = t.example_id ORDER BY t.rank
"""  # noqa: S608
COLUMNS = "x.id, x.subject, x.gold, x.overlap, x.rank, x.example_id, x.suggestion"
TOOK = f"""
    UPDATE annotation_task x SET taken = x.taken + 1 WHERE x.id = ANY (ARRAY(SELECT id FROM picked)) RETURNING {COLUMNS}
"""  # noqa: S608
LOCK = "FOR NO KEY UPDATE OF t"
TAKE_NEXT = TAKE.format(
    which="t.open AND t.rank > %(cursor)s", lock=f"{LOCK} SKIP LOCKED", took=TOOK, cursor="(SELECT max(rank) FROM t)"
)
TAKE_WAITING = TAKE.format(which="t.open", lock=LOCK, took=TOOK, cursor="cursor")
# the share lock makes sure that it still is a gold task while the seat is written
TAKE_GOLD = TAKE.format(
    which="t.overlap IS NULL",
    lock="FOR KEY SHARE OF t SKIP LOCKED",
    took=f"SELECT {COLUMNS} FROM annotation_task x WHERE x.id = ANY (ARRAY(SELECT id FROM picked))",  # noqa: S608
    cursor="cursor",
)
COUNT = """
    WITH change AS (
        SELECT id, sum(taken) AS taken, sum(done) AS done
        FROM unnest(%s::bigint[], %s::int[], %s::int[]) AS c(id, taken, done) GROUP BY id
    ), locked AS (
        SELECT t.id FROM annotation_task t JOIN change ON change.id = t.id
        WHERE t.overlap IS NOT NULL ORDER BY t.id FOR NO KEY UPDATE OF t
    )
    UPDATE annotation_task t
    SET taken = t.taken + change.taken, done = t.done + change.done,
        completed_at = CASE WHEN t.done + change.done >= t.overlap THEN coalesce(t.completed_at, %s) END
    FROM change JOIN locked ON locked.id = change.id WHERE t.id = change.id
    RETURNING t.id, t.completed_at IS NOT NULL
"""


@dataclass
class PersonPlace:
    """A person's place in a project. Code that holds one has locked `participant` until the transaction ends."""

    participant: Participant
    project: Project
    settings: Settings
    guidelines: Guidelines | None
    waiting: int | None = None  # what `count_waiting` found

    def lease(self, now: datetime) -> datetime:
        return now + timedelta(minutes=self.settings.lease_minutes)


def lock_place(user_id: int, workspace_id: int, project_id: int) -> PersonPlace | None:
    """The locked place; None for a person who does not take part in that project, or is in another workspace."""
    rows = prepared.rows(PLACE, {"user": user_id, "workspace": workspace_id, "project": project_id})
    return _place(rows[0]) if rows else None


def lock_seat(user_id: int, workspace_id: int, assignment_id: int) -> tuple[PersonPlace, Assignment] | None:
    """The person's assignment, with its task and example, and their place in its project, both locked."""
    rows = prepared.rows(PLACE_AND_SEAT, {"user": user_id, "workspace": workspace_id, "assignment": assignment_id})
    if not rows:
        return None
    place = _place(rows[0])
    return place, _assignment(rows[0][PERSON_COLUMNS:], place.project)


def _place(row: Sequence[Any]) -> PersonPlace:
    """A place made of the columns of `PERSON`."""
    project = Project(id=row[6], workspace_id=row[7], kind=row[8], state=row[9], overlap=row[10], tasks_made=row[12])
    project.settings = json.loads(row[11])
    participant = Participant(
        id=row[0], project=project, user_id=row[1], cursor=row[2], served=row[3], submitted=row[4], paused=row[5]
    )
    guidelines = Guidelines(id=row[13], number=row[14], project=project) if row[13] else None
    return PersonPlace(participant, project, Settings.model_validate(project.settings), guidelines)


def open_seats(place: PersonPlace, most: int) -> list[Assignment]:
    """The open seats of this person, in the order in which they were served."""
    rows = prepared.rows(OPEN, [place.project.pk, place.participant.user_id, most])
    return [_assignment(row, place.project) for row in rows]


def take_next(place: PersonPlace, count: int) -> list[Assignment]:
    """Takes up to `count` seats after the person's cursor and moves it; tasks locked by others are skipped."""
    seats = _take(TAKE_NEXT, place, count)
    if seats:
        place.participant.cursor = max(seat.task.rank for seat in seats)
    return seats


def take_waiting(place: PersonPlace) -> list[Assignment]:
    """Takes one seat at any rank and waits for locks; [] only if none is left for this person."""
    return _take(TAKE_WAITING, place, 1)


def take_gold(place: PersonPlace, count: int) -> list[Assignment]:
    """Takes up to `count` gold tasks that this person has not had."""
    return _take(TAKE_GOLD, place, count)


def _take(sql: str, place: PersonPlace, count: int) -> list[Assignment]:
    if count < 1:
        return []
    now = timezone.now()
    # the number is in the text: with a parameter, the planner would plan for a tenth of all tasks
    rows = prepared.rows(sql.format(count=count), _values(place) | {"now": now, "lease": place.lease(now)})
    place.participant.served += len(rows)
    found = [_assignment(row, place.project) for row in rows]
    if rows:
        waited = rows[0][-1]  # as it was before these were taken
        place.waiting = waited - sum(seat.task.overlap is not None for seat in found) if waited <= COUNTED else waited
    return found


def count_waiting(place: PersonPlace) -> int:
    """The number of tasks that wait for this person after their cursor, counted up to COUNTED + 1."""
    if place.waiting is None:
        place.waiting = int(prepared.rows(WAITING, _values(place))[0][0])
    return place.waiting


def count_gold(place: PersonPlace) -> int:
    """The number of gold tasks that this person has not had, counted up to COUNTED + 1."""
    return int(prepared.rows(GOLD_LEFT, _values(place))[0][0])


def _values(place: PersonPlace) -> dict[str, Any]:
    return {
        "project": place.project.pk,
        "user": place.participant.user_id,
        "participant": place.participant.pk,
        "cursor": place.participant.cursor,
        "guidelines": place.guidelines and place.guidelines.pk,
        "number": place.guidelines and place.guidelines.number,
    }


def retake(seat: Assignment) -> bool:
    """Takes the seat of a returned or skipped assignment again; False if it is no longer free."""
    if seat.task.overlap is None:
        return True
    with connection.cursor() as cursor:
        cursor.execute("UPDATE annotation_task SET taken = taken + 1 WHERE id = %s AND open", [seat.task_id])
        return bool(cursor.rowcount)


def count(changes: Iterable[tuple[int, int, int]]) -> dict[int, bool]:
    """Adds (task, taken, done) to the counters; {task: whether it is complete now}. Gold tasks count nothing."""
    listed = list(changes)
    if not listed:
        return {}
    tasks, taken, done = (list(column) for column in zip(*listed, strict=True))
    return dict(prepared.rows(COUNT, [tasks, taken, done, timezone.now()]))


def lock(tasks: QuerySet[Task]) -> None:
    """Locks the tasks by id, before a statement changes many of them in any order."""
    list(tasks.select_for_update(no_key=True).order_by("id").values_list("id"))


def give_up(seats: Sequence[Assignment]) -> None:
    """Returns open seats, locked by the caller, to the queue. A reopened one goes back to the answer that stands."""
    standing = [seat for seat in seats if seat.submitted_at]
    returned = [seat for seat in seats if not seat.submitted_at]
    for rows, state in ((standing, Assignment.State.SUBMITTED), (returned, Assignment.State.RETURNED)):
        if rows:
            Assignment.objects.filter(id__in=[seat.pk for seat in rows]).update(state=state)
    count([(seat.task_id, 0, 1) for seat in standing] + [(seat.task_id, -1, 0) for seat in returned])


def _assignment(row: Sequence[Any], project: Project) -> Assignment:
    """An assignment with `project`, `task.example` and `guidelines` in place, made of the columns of `SEAT`."""
    task = Task(id=row[1], project=project, subject=json.loads(row[17]), overlap=row[19], rank=row[20])
    task.gold = None if row[18] is None else json.loads(row[18])
    task.suggestion = None if row[23] is None else json.loads(row[23])
    task.example = Example(id=row[21], canonical=row[22])
    seat = Assignment(
        id=row[0], task=task, project=project, user_id=row[3], state=row[4], order=json.loads(row[5]),
        claimed_at=row[6], lease_until=row[7], submitted_at=row[8], draft_revision=row[10], draft_at=row[11],
        skip_reason=row[12], sent_back=row[13], seconds=row[14],
        guidelines=row[15] and Guidelines(id=row[15], number=row[16], project=project),
    )  # fmt: skip
    seat.draft = None if row[9] is None else json.loads(row[9])
    return seat


def as_json(value: object) -> str:
    return json.dumps(value, ensure_ascii=False, separators=(",", ":"))
