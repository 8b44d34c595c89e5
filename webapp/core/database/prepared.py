"""Statements that Postgres parses and plans once per connection: for the few that every request of a busy path runs.

Django binds values on the client, which makes each statement a new one to the server. Here they are sent apart from it,
so every placeholder whose type Postgres cannot tell from its place needs a cast in the SQL.
"""

from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from functools import cached_property
from typing import Any, Generic, TypeVar

from django.db import connection, models
from django.db.backends.postgresql.base import ServerBindingCursor
from django.db.models.query import get_related_populators

Row = TypeVar("Row", bound=models.Model)
Values = Sequence[Any] | Mapping[str, Any]
RUNS_BEFORE = 1  # of a statement, before it is prepared


def rows(sql: str, values: Values) -> list[tuple[Any, ...]]:
    """Runs the statement, which must return rows, and reads them all. Prepared from its second run on."""
    with _executed(sql, values) as cursor:
        return list(cursor.fetchall())


def run(sql: str, values: Values) -> int:
    """Runs the statement, which returns no rows: how many rows it has written."""
    with _executed(sql, values) as cursor:
        return int(cursor.rowcount)


class RowBy(Generic[Row]):
    """Rows of a model by the fields that identify one, with those that `rows()` selects beside them. Django writes the statement once per
    process: to write it for each request takes longer than the answer of the database."""

    def __init__(self, rows: Callable[[], models.QuerySet[Row]], *fields: str) -> None:
        self._rows, self._fields = rows, fields

    def __call__(self, *values: int | str) -> Row | None:
        """The row with these values in the fields; None if there is none. A queryset that locks needs a transaction."""
        compiler, sql, known, names, place, populators, converters = self._compiled
        found = rows(sql, [*known, *values])
        for row in compiler.apply_converters(found, converters) if converters else found:
            made: Row = compiler.query.model.from_db(connection.alias, names, row[place])
            for each in populators:
                each.populate(row, made)
            return made
        return None

    @cached_property
    def _compiled(self) -> tuple[Any, str, Values, list[str], slice, list[Any], dict[int, Any]]:
        asked = self._rows().order_by()
        for field in self._fields:  # one after the other: their values come in this order, and after those of `rows()`
            asked = asked.filter(**{field: 0})
        compiler = asked.query.get_compiler(connection=connection)
        sql, bound = compiler.as_sql()
        found = compiler.klass_info
        place = slice(found["select_fields"][0], found["select_fields"][-1] + 1)
        names = [column.target.attname for column, *_ in compiler.select[place]]
        beside = get_related_populators(found, compiler.select, connection.alias)  # type: ignore[call-arg]  # the stubs are of a later Django
        # looked for once: among some sixty columns of a run this takes longer than reading its row
        converters = compiler.get_converters([column for column, *_ in compiler.select])
        return compiler, sql, bound[: -len(self._fields)], names, place, beside, converters


@contextmanager
def _executed(sql: str, values: Values) -> Iterator[Any]:
    connection.ensure_connection()
    with _prepared(connection.connection):
        raw = ServerBindingCursor(connection.connection)  # type: ignore[call-arg]  # the stubs describe psycopg 2
        # wrapped as Django wraps its own: errors are Django's, and tests count the query
        with connection._prepare_cursor(raw) as cursor:  # type: ignore[attr-defined]
            cursor.execute(sql, values)
            yield cursor


@contextmanager
def _prepared(raw: Any) -> Iterator[None]:
    """For this statement alone. A connection that may prepare counts all statements that it runs, and keeps the last hundred for that:
    of those that Django sends, with every value in their text, megabytes that never run twice."""
    raw.prepare_threshold = RUNS_BEFORE
    try:
        yield
    finally:
        raw.prepare_threshold = None
