"""The parts of an answer that can be compared between people, each with its level of measurement.

Each field is a piece of SQL that turns one answer into (item, value) rows. So the coefficients and the list of tasks behind a cell of a
confusion matrix read the same values. `item` tells units within a task apart (a criterion, a pair of responses); a null value is a missing
rating.
"""

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

from django.db import connection

from webapp.annotation import kinds
from webapp.annotation.kinds.fields import Field
from webapp.annotation.models import Project
from webapp.core.requests.numbers import whole_number

from .pseudonyms import Faces

Row = tuple[int, int, str, str | None, str]  # task, user, item, value, domain
_ROWS = """
    SELECT task.id, seat.user_id, given.item, given.value, example.domain
    FROM annotation_answer AS answer
    JOIN annotation_assignment AS seat ON seat.id = answer.assignment_id AND seat.state = 'submitted'
    JOIN annotation_task AS task ON task.id = seat.task_id AND task.overlap IS NOT NULL
    JOIN datasets_example AS example ON example.id = task.example_id
    CROSS JOIN LATERAL ({values}) AS given
    WHERE answer.project_id = %s AND answer.current
"""


def fields(project: Project) -> list[Field]:
    """The fields by which answers of this project can be compared; none for rubrics and reasons, whose items are matched."""
    return kinds.get_kind(project.kind).fields(kinds.Settings.model_validate(project.settings))


def rows(project: Project, field: Field) -> Iterator[Row]:
    """Every value given so far: of current answers that stand; not of answers to gold tasks, nor of those sent back. A cursor of the server
    keeps the rows that are not read yet."""
    with connection.chunked_cursor() as cursor:
        cursor.execute(_ROWS.replace("{values}", field.sql), [*field.params, project.pk])
        while batch := cursor.fetchmany(5_000):
            yield from batch


@dataclass(frozen=True)
class ConfusionCell:
    """A cell of a confusion matrix: the first rater gave the first value, the second rater the second."""

    field: Field
    raters: tuple[int, int]
    values: tuple[str, str]

    def says(self) -> list[str]:
        return [self.field.says(self.field.value(value)) for value in self.values]


def cell(project: Project, people: Faces, key: str, pair: str, values: tuple[str, str]) -> ConfusionCell | None:
    """The cell of field `key` and of the two people with the numbers in `pair` ("1-2"); None if there is no such cell."""
    field = next((each for each in fields(project) if each.key == key), None)
    users = [people.user(n) for text in pair.split("-") if (n := whole_number(text, 8)) is not None]
    if field is None or len(users) != 2 or users[0] is None or users[1] is None:
        return None
    try:
        for value in values:
            field.value(value)
    except ValueError:
        return None
    return ConfusionCell(field, (users[0], users[1]), values)


def tasks_behind(project: Project, found: ConfusionCell, after: int = 0, limit: int = 50) -> list[int]:
    """Ids of the tasks in a cell, ascending."""
    field = found.field
    one = _ROWS.replace("{values}", field.sql) + " AND seat.user_id = %s AND given.value = %s AND task.id > %s"
    sql = f"""
        SELECT DISTINCT one.id FROM ({one}) AS one JOIN ({one}) AS two ON one.id = two.id AND one.item = two.item
        ORDER BY one.id LIMIT %s
    """  # noqa: S608  constants of this module
    params: list[Any] = []
    for rater, value in zip(found.raters, found.values, strict=True):
        params += [*field.params, project.pk, rater, value, after]
    with connection.cursor() as cursor:
        cursor.execute(sql, [*params, limit])
        return [row[0] for row in cursor.fetchall()]
