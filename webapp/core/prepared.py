"""Statements that Postgres parses and plans once per connection: for the few that every request of a busy path runs.

Django binds values on the client, which makes each statement a new one to the server. Here they are sent apart from it,
so every placeholder whose type Postgres cannot tell from its place needs a cast in the SQL.
"""

from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from typing import Any

from django.db import connection
from django.db.backends.postgresql.base import ServerBindingCursor

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
