"""What of an answer can be compared between people, and at which level of measurement.

Each field is a piece of SQL that turns one answer into (item, value) rows, so that the coefficients and the list of
tasks behind one cell of a confusion matrix read the very same values. `item` tells units within a task apart (a
criterion, a pair of responses); a null value is a missing rating.
"""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any

from django.db import connection

from trainer.benchmarks.agreement import Level
from webapp.annotation import consolidation, kinds
from webapp.annotation.models import Project
from webapp.core.numbers import whole

from .faces import Faces

STRENGTHS = {int(value): words for value, words in consolidation.STRENGTHS.items()}
SIDES = {"-1": "A better", "0": "same", "1": "B better", "both_bad": "both bad"}
VERDICTS = {"met": "met", "not_met": "not met"}
PAIRS = {"-1": "first better", "0": "equal", "1": "second better"}
Row = tuple[int, int, str, str | None, str]  # task, user, item, value, domain


@dataclass(frozen=True)
class Field:
    """`sql` yields (item, value) from `answer.content`; `params` fill its placeholders."""

    key: str
    label: str
    level: Level
    sql: str
    params: tuple[str, ...] = ()
    shown: Mapping[Any, str] = field(default_factory=dict)
    items: str = ""  # what `item` is, where a task has several units

    def value(self, text: str) -> str | float:
        return text if self.level == "nominal" else float(text)

    def says(self, value: str | float) -> str:
        """Words for a value, for people."""
        if isinstance(value, float):
            return self.shown.get(int(value), f"{value:g}")
        return self.shown.get(value, value)


_STRENGTH = "SELECT '' AS item, answer.content ->> 'strength' AS value"
_DIRECTION = """
    SELECT '' AS item, CASE answer.content ->> 'verdict' WHEN 'both_bad' THEN 'both_bad'
        WHEN 'cannot_assess' THEN NULL ELSE sign((answer.content ->> 'strength')::int)::int::text END AS value
"""
_DIMENSION = "SELECT '' AS item, answer.content -> 'dimensions' ->> %s AS value"
_SCALE = "SELECT '' AS item, answer.content -> 'ratings' ->> %s AS value"
_VERDICT = """
    SELECT grade ->> 'criterion' AS item, nullif(grade ->> 'verdict', 'cannot_assess') AS value
    FROM jsonb_array_elements(answer.content -> 'grades') AS grade
"""
_PLACED = """
    SELECT tier.place, side FROM jsonb_array_elements(answer.content -> 'tiers') WITH ORDINALITY AS tier(sides, place),
        jsonb_array_elements_text(tier.sides) AS side
"""
_PAIRS = f"""
    SELECT one.side || ' / ' || two.side AS item, sign(one.place - two.place)::int::text AS value
    FROM ({_PLACED}) AS one JOIN ({_PLACED}) AS two ON one.side < two.side COLLATE "C"
"""  # noqa: S608  constants
_BEST = """
    SELECT '' AS item, (SELECT place::text
        FROM jsonb_array_elements_text(task.subject -> 'responses') WITH ORDINALITY AS listed(side, place)
        WHERE side = answer.content -> 'tiers' -> 0 ->> 0) AS value
"""
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
    """What answers of this project can be compared by; none for rubrics and reasons, whose items are matched."""
    settings = kinds.Settings.model_validate(project.settings)
    if project.kind == Project.Kind.PAIRWISE:
        found = [
            Field("strength", "Preference strength", "ordinal", _STRENGTH, shown=STRENGTHS),
            Field("direction", "Direction", "nominal", _DIRECTION, shown=SIDES),
        ]
        rated = [
            Field(f"dimension:{name}", name, "ordinal", _DIMENSION, (name,), STRENGTHS) for name in settings.dimensions
        ]
        return found + rated
    if project.kind == Project.Kind.GRADING:
        return [Field("verdict", "Verdict on each criterion", "nominal", _VERDICT, shown=VERDICTS, items="criterion")]
    if project.kind == Project.Kind.RANKING and settings.ranking == "best":
        return [Field("best", "Best response, by its place", "nominal", _BEST)]
    if project.kind == Project.Kind.RANKING:
        return [Field("pairs", "Order of each two responses", "nominal", _PAIRS, shown=PAIRS, items="pair")]
    if project.kind == Project.Kind.RATING:
        return [Field(f"scale:{s.name}", s.name, "ordinal", _SCALE, (s.name,), s.labels) for s in settings.scales]
    return []


def rows(project: Project, field: Field) -> Iterator[Row]:
    """Every value given so far: current answers that stand; not those to gold tasks, nor those sent back. The server keeps
    what is not read yet."""
    with connection.chunked_cursor() as cursor:
        cursor.execute(_ROWS.replace("{values}", field.sql), [*field.params, project.pk])
        while batch := cursor.fetchmany(5_000):
            yield from batch


@dataclass(frozen=True)
class Cell:
    """Of a confusion matrix: the first rater gave the first value, the second the second."""

    field: Field
    raters: tuple[int, int]
    values: tuple[str, str]

    def says(self) -> list[str]:
        return [self.field.says(self.field.value(value)) for value in self.values]


def cell(project: Project, people: Faces, key: str, pair: str, values: tuple[str, str]) -> Cell | None:
    """The cell of field `key` and the two people with the numbers in `pair` ("1-2"); None where there is no such one."""
    field = next((each for each in fields(project) if each.key == key), None)
    users = [people.user(n) for text in pair.split("-") if (n := whole(text, 8)) is not None]
    if field is None or len(users) != 2 or users[0] is None or users[1] is None:
        return None
    try:
        for value in values:
            field.value(value)
    except ValueError:
        return None
    return Cell(field, (users[0], users[1]), values)


def tasks_behind(project: Project, found: Cell, after: int = 0, limit: int = 50) -> list[int]:
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
