"""The page of costs, and the same table as CSV."""

from collections.abc import Iterator
from datetime import UTC, date, datetime
from typing import Any

from django.http import Http404, HttpRequest, HttpResponse
from django.shortcuts import render
from django.utils import timezone
from django.utils.http import urlencode
from django.views.decorators.http import require_GET

from webapp.accounts.access import member, require
from webapp.accounts.models import Role
from webapp.core import spreadsheets
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
EVERY = 10_000  # lines of a file
LONGEST_ID = 19  # digits
CHOICES = {"month": "Month", "project": "Project", "run": "Work", "person": "Person"}


@require_GET
@member(Role.REVIEWER)
def costs(request: HttpRequest) -> HttpResponse:
    asked = _asked(request)
    found = _table(request, asked)
    largest = max((line.amounts[asked["sort"]].value or 0 for line in found.lines), default=0)
    context = {
        **asked,
        "table": found,
        "month": asked["month"] and f"{asked['month']:%Y-%m}",
        "heads": HEADS.items(),
        "choices": CHOICES.items(),
        "lines": [(line, _cells(line), line.amounts[asked["sort"]].value or 0) for line in found.lines],
        "total": _cells(found.total),
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
def costs_csv(request: HttpRequest) -> HttpResponse:
    asked = _asked(request)
    found = _table(request, asked, EVERY)
    head = [CHOICES[asked["by"]], "kind", "id", *queries.MEASURES, *(f"{name}_unknown" for name in queries.MEASURES)]
    response = HttpResponse(spreadsheets.lines([head, *_rows(found)]), content_type="text/csv; charset=utf-8")
    response["Content-Disposition"] = 'attachment; filename="costs.csv"'
    return response


def _rows(found: queries.CostTable) -> Iterator[list[Any]]:
    for line in found.lines:
        amounts = [line.amounts[name] for name in queries.MEASURES]
        yield [line.name, line.kind, line.id, *(each.value for each in amounts), *(each.unknown for each in amounts)]


def _table(request: HttpRequest, asked: dict[str, Any], most: int = queries.MOST) -> queries.CostTable:
    run = None if asked["run"] is None else asked["run"].pk
    return queries.table(require(request), asked["by"], asked["month"], asked["sort"], timezone.now(), most, run=run)


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


def _cells(line: queries.CostLine) -> list[tuple[str, queries.MeasuredCost]]:
    return [(name, line.amounts[name]) for name in HEADS]
