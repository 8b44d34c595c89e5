"""Keyset paging: a page takes the same time at row 10 and at row 100,000, and rows that are added meanwhile do not shift it."""

import json
from base64 import urlsafe_b64decode, urlsafe_b64encode
from dataclasses import dataclass
from datetime import datetime
from typing import Annotated, Any, Generic, TypeVar

from django.core.exceptions import ValidationError
from django.db.models import Field, Model, Q, QuerySet
from pydantic import Field as Bounded

from ..problems import Invalid

MAX_LIMIT = 200
Limit = Annotated[int, Bounded(ge=1, le=MAX_LIMIT, description="Rows a page")]
Row = TypeVar("Row", bound=Model)


@dataclass(frozen=True)
class Page(Generic[Row]):
    """`next` is the cursor of the following page, None on the last."""

    items: list[Row]
    next: str | None


def page(queryset: QuerySet[Row], cursor: str | None = None, limit: int = 50, order: str = "-id") -> Page[Row]:
    """The rows after `cursor`, ordered by one non-null column (`-` for descending) and by id among equals.

    Raises Invalid at `cursor` or `limit`. A cursor only fits the order it was made for.
    """
    if not 1 <= limit <= MAX_LIMIT:
        raise Invalid("The page size is too small or too large.", {"limit": f"must be between 1 and {MAX_LIMIT}"})
    name, down = order.removeprefix("-"), order.startswith("-")
    if cursor:
        queryset = queryset.filter(_after(queryset, cursor, name, down))
    sign = "-" if down else ""
    ordering = (f"{sign}{name}",) if name in ("id", "pk") else (f"{sign}{name}", f"{sign}id")
    rows = list(queryset.order_by(*ordering)[: limit + 1])
    more = len(rows) > limit
    rows = rows[:limit]
    return Page(rows, _encode(order, rows[-1], name) if more else None)


def _after(queryset: QuerySet[Row], cursor: str, name: str, down: bool) -> Q:
    step = "lt" if down else "gt"
    try:
        order, value, pk = json.loads(urlsafe_b64decode(cursor.encode()))
        if order != ("-" if down else "") + name or not isinstance(pk, int):
            raise ValueError
        if (value := _column(queryset, name).to_python(value)) is None:
            raise ValueError
    except (ValueError, TypeError, RecursionError, ValidationError) as error:
        raise Invalid("This cursor does not belong to this list.", {"cursor": "take the cursor from `next`"}) from error
    if name in ("id", "pk"):
        return Q(**{f"id__{step}": pk})
    return Q(**{f"{name}__{step}": value}) | Q(**{name: value, f"id__{step}": pk})


def _column(queryset: QuerySet[Row], name: str) -> "Field[Any, Any]":
    column = queryset.model._meta.get_field("id" if name == "pk" else name)
    if not isinstance(column, Field):
        raise TypeError(f"cannot order by {name}: it is not a column")
    return column


def _encode(order: str, row: Model, name: str) -> str:
    value = getattr(row, name)
    text = value.isoformat() if isinstance(value, datetime) else value
    return urlsafe_b64encode(json.dumps([order, text, row.pk]).encode()).decode()
