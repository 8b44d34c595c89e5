"""Exports of answers: un-swapped, under pseudonyms, with everything that a study needs. They stream, so memory stays flat."""

import json
from array import array
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from datetime import datetime
from typing import Any

from django.db import connection

from webapp.annotation import kinds
from webapp.annotation.models import Project
from webapp.core.text import spreadsheets

from ..agreement.pseudonyms import Faces

AT_A_TIME = 1_000
COLUMNS = [
    "id",
    "task",
    "example",
    "domain",
    "kind",
    "rater",
    "name",
    "subject",
    "content",
    "guidelines",
    "seconds",
    "suggestion",
    "suggested_by",
    "revision",
    "current",
    "state",
    "gold",
    "gold_right",
    "gold_recall",
    "submitted_at",
    "shown_order",
    "resolution",
]
_SELECT = """
    SELECT answer.id, task.id, example.key, example.domain, seat.user_id, task.subject::text, answer.content::text,
        guidelines.number, answer.seconds, answer.suggestion, answer.revision, answer.current, seat.state,
        task.overlap IS NULL, answer.gold_right, answer.submitted_at, seat."order"::text, resolution.source,
        (answer.gold_detail->>'recall')::float, answer.suggested_by
    FROM annotation_answer AS answer
    JOIN annotation_assignment AS seat ON seat.id = answer.assignment_id
    JOIN annotation_task AS task ON task.id = seat.task_id
    JOIN datasets_example AS example ON example.id = task.example_id
    LEFT JOIN annotation_guidelines AS guidelines ON guidelines.id = answer.guidelines_id
    LEFT JOIN annotation_resolution AS resolution ON resolution.task_id = task.id
"""
_PAGE = (
    f"{_SELECT} WHERE answer.project_id = %s AND answer.id > %s AND (answer.current OR %s) ORDER BY answer.id LIMIT %s"
)
_OF_IDS = f"{_SELECT} WHERE answer.id = ANY(%s) ORDER BY answer.id"
_IDS = "SELECT id, current FROM annotation_answer WHERE project_id = %s AND (current OR %s) ORDER BY id"


def page(
    project: Project, people: Faces, after: int = 0, limit: int = AT_A_TIME, revisions: bool = False
) -> list[dict[str, Any]]:
    """Up to `limit` answers after the id `after`, oldest first; with `revisions`, superseded ones too."""
    with connection.cursor() as cursor:
        cursor.execute(_PAGE, [project.pk, after, revisions, limit])
        return [_record(project, people, row) for row in cursor.fetchall()]


@dataclass(frozen=True)
class Moment:
    """The answers of an export as they are at one moment, oldest first, so that an answer that changes while the file is sent is in it as it was.
    Nine bytes for each."""

    ids: "array[int]"
    current: bytearray

    def parts(self) -> Iterator["Moment"]:
        """The answers in parts of `AT_A_TIME`."""
        for start in range(0, len(self.ids), AT_A_TIME):
            end = start + AT_A_TIME
            yield Moment(self.ids[start:end], self.current[start:end])


def at_this_moment(project: Project, revisions: bool) -> Moment:
    """The current answers; with `revisions`, superseded ones too."""
    ids, current = array("q"), bytearray()
    with connection.cursor() as cursor:
        cursor.execute(_IDS, [project.pk, revisions])
        while rows := cursor.fetchmany(10 * AT_A_TIME):
            ids.extend(pk for pk, _ in rows)
            current.extend(was_current for _, was_current in rows)
    return Moment(ids, current)


def _of(project: Project, people: Faces, moment: Moment) -> list[dict[str, Any]]:
    was_current = dict(zip(moment.ids, moment.current, strict=True))
    with connection.cursor() as cursor:
        cursor.execute(_OF_IDS, [list(moment.ids)])
        rows = [_record(project, people, row) for row in cursor.fetchall()]
    return [row | _replaced_since(row, bool(was_current[row["id"]])) for row in rows]


def _replaced_since(row: Mapping[str, Any], was_current: bool) -> dict[str, Any]:
    return {"current": True, "state": "standing"} if was_current and not row["current"] else {}


def _record(project: Project, people: Faces, row: tuple[Any, ...]) -> dict[str, Any]:
    rater = people.by_user.get(row[4])
    return {
        "id": row[0],
        "task": row[1],
        "example": row[2],
        "domain": row[3],
        "kind": project.kind,
        "rater": rater.pseudonym if rater else "annotator-0",
        **({"name": rater.name if rater else ""} if people.named else {}),
        "subject": json.loads(row[5]),
        "content": json.loads(row[6]),
        "guidelines": row[7],
        "seconds": row[8] or None,
        "suggestion": row[9],
        "suggested_by": row[19],
        "revision": row[10],
        "current": row[11],
        "state": "standing" if row[11] and row[12] == "submitted" else "reopened" if row[11] else "superseded",
        "gold": row[13],
        "gold_right": row[14],
        "gold_recall": row[18],
        "submitted_at": people.moment(row[15]),
        "shown_order": json.loads(row[16]),
        "resolution": row[17],
    }


def lines(project: Project, people: Faces, moment: Moment) -> str:
    """The answers as JSON Lines."""
    found = _of(project, people, moment)
    return "".join(json.dumps(row, ensure_ascii=False, default=_plain) + "\n" for row in found)


def _plain(value: Any) -> Any:
    if isinstance(value, datetime):
        return value.isoformat()
    raise TypeError(f"{type(value).__name__} is not JSON")


def table_head(project: Project, people: Faces) -> str:
    """The first line of the CSV."""
    names = [name for name in COLUMNS if name != "name" or people.named]
    return spreadsheets.lines([[*names, *_columns(project)]])


def table_rows(project: Project, people: Faces, moment: Moment) -> str:
    """The answers as lines of the CSV, with the parts of the answer in their own columns."""
    columns = _columns(project)
    return spreadsheets.lines([_cells(row, columns) for row in _of(project, people, moment)])


def _columns(project: Project) -> Mapping[str, Callable[[Mapping[str, Any]], Any]]:
    return kinds.get_kind(project.kind).columns(kinds.Settings.model_validate(project.settings))


def _cells(row: Mapping[str, Any], columns: Mapping[str, Callable[[Mapping[str, Any]], Any]]) -> list[Any]:
    cells = [_cell(row[name]) for name in COLUMNS if name in row]
    return cells + [_cell(value(row["content"])) for value in columns.values()]


def _cell(value: Any) -> Any:
    if value is None:
        return ""
    if isinstance(value, dict | list):
        return json.dumps(value, ensure_ascii=False)
    if isinstance(value, datetime):
        return value.isoformat()
    return value


def says(row: Mapping[str, Any]) -> str:
    """An answer in a few words, for lists."""
    return kinds.get_kind(row["kind"]).says(row["content"])
