"""The page of lineage: from any row down to what was made of it, and up to the people it rests on."""

from collections import Counter
from typing import Any, get_args

from django.http import Http404, HttpRequest, HttpResponse
from django.shortcuts import render
from django.views.decorators.http import require_GET

from webapp.accounts.access import member, require
from webapp.accounts.models import Role
from webapp.core.database.paging import page
from webapp.core.problems import Invalid
from webapp.core.requests.numbers import whole_number
from webapp.evaluation.recipes import RECIPES
from webapp.judging.access import judge_read

from . import queries
from .drawing import HEIGHT, WIDTH
from .first_steps import Way
from .graph import DEEPEST, STEPS
from .kinds import KINDS

FEW, MANY = 10, 100
ALLOWED = range(1, DEEPEST + 1)
UP = ("run", "model", "evaluation", "study", "job", "rollout", "report")
"""The kinds whose page shows their origin, unless the address says otherwise. Pages of other kinds show what was made of them, if there is anything."""


@require_GET
@member(Role.REVIEWER)
def lineage(request: HttpRequest, what: str, what_id: int) -> HttpResponse:
    found = _walked(request, what, what_id)
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
            "withdrawn": found.way == "down" and what in ("person", "answer", "example", "guidelines", "version"),
            "again": sum(found.again.values()),
        },
    )


@require_GET
@member(Role.REVIEWER)
def lineage_graph(request: HttpRequest, what: str, what_id: int) -> HttpResponse:
    """The rows `?steps=` above and below a row, as a picture and as a list."""
    levels = whole_number(request.GET.get("steps", str(STEPS)), 2) or 0
    if levels not in ALLOWED:
        raise Http404("no such number of steps")
    row, drawn = queries.graph(require(request), what, what_id, levels)
    kind = KINDS[what]
    context = {"what": what, "what_id": what_id, "found": {"kind": kind, "way": "graph"}, "name": kind.label(row)}
    context |= {"url": kind.address(row), "graph": drawn, "levels": levels, "allowed": ALLOWED}
    context |= {"width": WIDTH, "height": HEIGHT}
    context["listed"] = [(box, drawn.beside(box)) for box in drawn.boxes]
    return render(request, "lineage/graph.html", context)


@require_GET
@member(Role.REVIEWER)
def judge_evaluations(request: HttpRequest, judge_id: int) -> HttpResponse:
    """A fragment of the page of a judge: the evaluations that measured its versions, or asked them."""
    membership = require(request)
    judge = judge_read(membership, judge_id)
    rows = queries.evaluations_of(membership.workspace_id, judge.pk, MANY + 1)
    titled = [(row, RECIPES[row.recipe].title if row.recipe in RECIPES else row.recipe) for row in rows[:MANY]]
    return render(request, "lineage/_evaluations.html", {"rows": titled, "more": len(rows) > MANY, "most": MANY})


def _walked(request: HttpRequest, what: str, what_id: int) -> queries.Walked:
    """The walk in the direction of the address. If the address names none and nothing was made from the row, the walk to its origin."""
    membership, asked = require(request), request.GET.get("way")
    found = queries.walked(membership, what, what_id, _way(asked or ("up" if what in UP else "down")))
    if asked or found.counts or found.way == "up":
        return found
    origin = queries.walked(membership, what, what_id, "up")
    return origin if origin.counts else found


def _section(found: queries.Walked, kind: str, cursor: str | None, limit: int) -> dict[str, Any]:
    shown = page(found.rows(kind), cursor, limit)
    rows = [found.told(kind, row) for row in shown.items]
    same = Counter(row["name"] for row in rows)
    return {
        "kind": KINDS[kind],
        "count": found.counts[kind],
        "rows": [row | {"number": row["id"] if same[row["name"]] > 1 else None} for row in rows],
        "next": shown.next,
        "hidden": kind == "person" and not found.named,
    }


def _way(given: str) -> Way:
    for way in get_args(Way):
        if given == way:
            return way  # type: ignore[no-any-return]
    raise Http404("no such way")
