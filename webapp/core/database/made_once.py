"""A query whose statement is made once in a process: to make the statement of many tables takes longer than to run it."""

from collections.abc import Callable
from datetime import datetime, timedelta
from typing import Any

from django.db import connection
from django.db.models import QuerySet
from django.utils import timezone

NOBODY = -7_777_777_777  # the id for which the statement is made; no row has it


class StatementOfId:
    """`rows(id)` gives the rows of `query(id)` as tuples. The queries may differ by this id alone, and by times as far before now."""

    def __init__(self, query: "Callable[[int], QuerySet[Any, Any]]") -> None:
        self._query = query
        self._made: tuple[str, list[Any]] | None = None

    def rows(self, of: int) -> list[tuple[Any, ...]]:
        statement, given = self._made = self._made or self._make()
        now = timezone.now()
        with connection.cursor() as cursor:
            cursor.execute(statement, [_now(value, of, now) for value in given])
            found: list[tuple[Any, ...]] = cursor.fetchall()
        return found

    def _make(self) -> tuple[str, list[Any]]:
        began = timezone.now()
        statement, given = self._query(NOBODY).query.sql_with_params()
        return statement, [_before(value, began) for value in given]


def _before(value: Any, began: datetime) -> Any:
    """A time as the whole seconds before now: the query was made a little later than `began`."""
    return timedelta(seconds=round((began - value).total_seconds())) if isinstance(value, datetime) else value


def _now(value: Any, of: int, now: datetime) -> Any:
    if isinstance(value, timedelta):
        return now - value
    return of if value == NOBODY else value
