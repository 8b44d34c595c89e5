"""The page of lineage: from any row down to what was made of it, and up to the people it rests on."""

from typing import Any, get_args

from django.http import Http404, HttpRequest, HttpResponse
from django.shortcuts import render
from django.views.decorators.http import require_GET

from webapp.accounts.access import member, require
from webapp.accounts.models import Role
from webapp.core.paging import page
from webapp.core.problems import Invalid

from . import queries
from .kinds import KINDS
from .walking import Way

FEW, MANY = 10, 100
UP = ("run", "model", "evaluation", "study", "job", "rollout", "report")
"""The kinds whose page shows their origin, unless the address says otherwise. Pages of other kinds show what was made of them."""


@require_GET
@member(Role.REVIEWER)
def lineage(request: HttpRequest, what: str, what_id: int) -> HttpResponse:
    way = _way(request.GET.get("way") or ("up" if what in UP else "down"))
    found = queries.walked(require(request), what, what_id, way)
    start, of = found.told(what, found.row), request.GET.get("of", "")
    kinds = [name for name in found.counts if of in ("", name)]
    cursor, limit = (request.GET.get("cursor"), MANY) if of else (None, FEW)
    try:
        sections = [_section(found, name, cursor, limit) for name in kinds]
    except Invalid as error:
        raise Http404("no such page") from error
    return render(
        request,
        "lineage/lineage.html",
        {
            "found": found,
            "name": start["name"],
            "url": start["url"],
            "flow": [(KINDS[name], count) for name, count in found.counts.items()],
            "sections": sections,
            "of": of,
            "what": what,
            "what_id": what_id,
            "withdrawn": way == "down" and what in ("person", "answer", "example", "guidelines", "version"),
            "again": sum(found.again.values()),
        },
    )


def _section(found: queries.Walked, kind: str, cursor: str | None, limit: int) -> dict[str, Any]:
    shown = page(found.rows(kind), cursor, limit)
    return {
        "kind": KINDS[kind],
        "count": found.counts[kind],
        "rows": [found.told(kind, row) for row in shown.items],
        "next": shown.next,
        "hidden": kind == "person" and not found.named,
    }


def _way(given: str) -> Way:
    for way in get_args(Way):
        if given == way:
            return way  # type: ignore[no-any-return]
    raise Http404("no such way")
