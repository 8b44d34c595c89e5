"""The page of costs, and the same table as CSV."""

from collections.abc import Iterator, Sequence
from datetime import UTC, date, datetime
from itertools import chain
from typing import Any

from django.http import Http404, HttpRequest, HttpResponse, StreamingHttpResponse
from django.shortcuts import render
from django.utils import timezone
from django.utils.http import urlencode
from django.views.decorators.http import require_GET

from webapp.accounts.access import member, require
from webapp.accounts.models import Role
from webapp.core.text import spreadsheets
from webapp.experiments.access import run_read
from webapp.experiments.models import Run

from . import queries

HEADS = {
    "hours": "Hours",
    "gpu_hours": "GPU-hours",
    "tokens": "Tokens",
    "money": "Money",
    "minutes": "People's minutes",
}
PAGE = 10_000  # lines of a file that are read at once
LONGEST_ID = 19  # digits
CHOICES = {"month": "Month", "project": "Project", "run": "Work", "person": "Person"}


@require_GET
@member(Role.REVIEWER)
def costs(request: HttpRequest) -> HttpResponse:
    asked = _asked(request)
    found = _table(request, asked, timezone.now())
    shown = [asked["sort"], *(name for name in HEADS if name != asked["sort"])]  # a phone has room for one number
    largest = max((line.amounts[asked["sort"]].value or 0 for line in found.lines), default=0)
    context = {
        **asked,
        "table": found,
        "month": asked["month"] and f"{asked['month']:%Y-%m}",
        "heads": HEADS.items(),
        "columns": [(name, HEADS[name]) for name in shown],
        "choices": CHOICES.items(),
        "lines": [(line, _cells(line, shown), line.amounts[asked["sort"]].value or 0) for line in found.lines],
        "total": _cells(found.total, shown),
        "largest": largest,
        "bar": HEADS[asked["sort"]],
        "file": urlencode(
            {name: request.GET[name] for name in ("month", "run") if name in request.GET}
            | {"by": asked["by"], "sort": asked["sort"]}
        ),
    }
    return render(request, "costs/costs.html", context)


@require_GET
@member(Role.REVIEWER)
def costs_csv(request: HttpRequest) -> StreamingHttpResponse:
    asked = _asked(request)
    head = [CHOICES[asked["by"]], "kind", "id", *queries.MEASURES, *(f"{name}_unknown" for name in queries.MEASURES)]
    pages = _pages(request, asked, timezone.now())
    text = chain([spreadsheets.lines([head])], (spreadsheets.lines(map(_row, lines)) for lines in pages))
    headers = {"Content-Disposition": 'attachment; filename="costs.csv"'}
    return StreamingHttpResponse(text, content_type="text/csv; charset=utf-8", headers=headers)


def _pages(request: HttpRequest, asked: dict[str, Any], now: datetime) -> Iterator[Sequence[queries.CostLine]]:
    """All lines, as they were at `now`."""
    after: queries.After | None = None
    while True:
        found = _table(request, asked, now, PAGE, after)
        yield found.lines
        if not found.more:
            return
        after = queries.After.of(found.lines[-1])


def _row(line: queries.CostLine) -> list[Any]:
    amounts = [line.amounts[name] for name in queries.MEASURES]
    return [line.name, line.kind, line.id, *(each.value for each in amounts), *(each.unknown for each in amounts)]


def _table(
    request: HttpRequest,
    asked: dict[str, Any],
    now: datetime,
    most: int = queries.MOST,
    after: queries.After | None = None,
) -> queries.CostTable:
    run = None if asked["run"] is None else asked["run"].pk
    return queries.table(require(request), asked["by"], asked["month"], asked["sort"], now, most, run=run, after=after)


def _asked(request: HttpRequest) -> dict[str, Any]:
    """The choices of the address; what cannot be read is left out, except a run."""
    by, sort = request.GET.get("by", ""), request.GET.get("sort", "")
    month: date | None = None
    try:
        month = datetime.strptime(request.GET.get("month", ""), "%Y-%m").replace(tzinfo=UTC).date()
    except ValueError:
        month = None
    if month is not None and not 2000 <= month.year <= 2200:
        month = None
    return {
        "by": by if by in CHOICES else "month",
        "sort": sort if sort in HEADS else "hours",
        "month": month,
        "run": _run(request),
    }


def _run(request: HttpRequest) -> Run | None:
    """The run to which the address narrows the table. Raises Http404 if that is no number, or the person sees no such run."""
    asked = request.GET.get("run", "")
    if not asked:
        return None
    if not (asked.isascii() and asked.isdecimal() and len(asked) < LONGEST_ID):
        raise Http404("no such run")
    return run_read(require(request), int(asked))


def _cells(line: queries.CostLine, shown: Sequence[str]) -> list[tuple[str, queries.MeasuredCost]]:
    return [(name, line.amounts[name]) for name in shown]
