"""The table of costs over the API, with the role of its page: reviewer."""

import json
from base64 import urlsafe_b64decode, urlsafe_b64encode
from datetime import date, datetime
from decimal import Decimal
from typing import Annotated, Any

from django.http import HttpRequest
from django.utils import timezone
from ninja import Query, Router, Schema
from pydantic import Field

from webapp.accounts import areas
from webapp.accounts.access import key_opens, require
from webapp.core.database.paging import Limit
from webapp.core.problems import Invalid
from webapp.core.requests.strict_query import OneOf
from webapp.experiments.access import may_read, run_read

from . import queries

router = Router(tags=["costs"])
PEOPLE = areas.Need(areas.Area.ANNOTATION, areas.Right.READ)  # what people do in annotation projects
EARLIEST, LATEST = 2000, 2200  # years
By = Annotated[
    str, OneOf(tuple(queries.KEYS)), Field(description="The kind of a line; `run` is a piece of work of any kind")
]
Sort = Annotated[str, OneOf(queries.MEASURES), Field(description="The largest first; months are sorted by time")]
Month = Annotated[
    str, Query(pattern=r"^\d{4}-(0[1-9]|1[0-2])$", description="Such as 2026-11 (UTC); without it, all time")
]


class CostAmountOut(Schema):
    value: float | None = Field(description="Null if nothing of it was measured, which is not zero")
    unknown: int = Field(
        description="Runs and jobs, calls (tokens, money) or tasks (minutes) that are not in the value"
    )


class CostOut(Schema):
    """`hours` of processes, `gpu_hours`, `tokens` and `money` of models behind endpoints, `minutes` of annotators."""

    kind: str
    id: int = Field(description="0 for a line of several pieces of work, and for a month")
    name: str
    url: str = Field(description="Its page; empty if it has none")
    hours: CostAmountOut
    gpu_hours: CostAmountOut
    tokens: CostAmountOut
    money: CostAmountOut
    minutes: CostAmountOut


class CostList(Schema):
    items: list[CostOut]
    total: CostOut = Field(description="The total of all lines, also those of other pages")
    next: str | None


@router.get("/costs", response=CostList, summary="Costs of work, by month, project, piece of work or person")
def costs(
    request: HttpRequest,
    by: By = "month",
    month: Month | None = None,
    sort: Sort = "hours",
    run: Annotated[int | None, Query(ge=1, lt=2**63, description="Only this run")] = None,
    cursor: str | None = None,
    limit: Limit = 50,
) -> dict[str, Any]:
    """The same numbers as the page of costs. Work that is under way counts up to the moment of the first page, on all pages of a list."""
    membership = may_read(require(request))
    if run is not None:
        run_read(membership, run)
    asked = [by, month, sort, run]
    now, after = _read(asked, cursor) if cursor else (timezone.now(), None)
    found = queries.table(
        membership, by, _month(month), sort, now, limit, run=run, after=after, named=key_opens(request, PEOPLE)
    )
    following = _cursor(asked, now, found.lines[-1]) if found.more else None
    return {"items": [_told(line) for line in found.lines], "total": _told(found.total), "next": following}


def _told(line: queries.CostLine) -> dict[str, Any]:
    return {"kind": line.kind or "total", "id": line.id, "name": line.name, "url": line.url, **line.amounts}


def _month(told: str | None) -> date | None:
    """Raises Invalid at `month`."""
    if told is None:
        return None
    found = date.fromisoformat(f"{told}-01") if told > "0001" else date.min
    if not EARLIEST <= found.year <= LATEST:
        raise Invalid("There are no costs of such a month.", {"month": f"must be between {EARLIEST} and {LATEST}"})
    return found


def _cursor(asked: list[Any], now: datetime, last: queries.CostLine) -> str:
    told = [asked, now.isoformat(), last.sorted_by, last.kind, last.id]
    return urlsafe_b64encode(json.dumps(told).encode()).decode()


def _read(asked: list[Any], cursor: str) -> tuple[datetime, queries.After]:
    """Raises Invalid at `cursor`."""
    try:
        of, now, value, kind, pk = json.loads(urlsafe_b64decode(cursor.encode()))
        moment = datetime.fromisoformat(now)
        if (
            of != asked
            or not isinstance(kind, str)
            or type(pk) is not int
            or not 0 <= pk < 2**63
            or moment.tzinfo is None
        ):
            raise ValueError
        if value is not None and not (isinstance(value, str) and len(value) < 100 and Decimal(value).is_finite()):
            raise ValueError
        if "\0" in kind or not EARLIEST <= moment.year <= LATEST:
            raise ValueError
    except (ValueError, TypeError, ArithmeticError, RecursionError) as error:
        raise Invalid("This cursor does not belong to this list.", {"cursor": "take the cursor from `next`"}) from error
    return moment, queries.After(value, kind, pk)
