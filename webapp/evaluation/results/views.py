"""Pages of one evaluation: its result, its cases, its config, its files. They need the role reviewer; foreign ones are 404."""

from typing import Any
from uuid import uuid4

from django.http import Http404, HttpRequest, HttpResponse, HttpResponseBase
from django.shortcuts import redirect, render
from django.urls import path
from django.views.decorators.cache import never_cache
from django.views.decorators.http import require_GET

from webapp.accounts.access import member, require
from webapp.accounts.models import Membership, Role
from webapp.core.auditing import audit
from webapp.core.problems import Problem

from .. import access, queries
from ..launch import services, training_leaks
from ..models import Evaluation
from ..recipes import RECIPES
from ..recipes.policies import corrected
from ..studies import next_grades
from ..studies.services import studies
from . import export, pages

State = Evaluation.State
MOST_STUDIES = 50
EXPORTS = {"json": export.as_json, "html": export.as_html, "csv": export.as_csv}


@member(access.READER)
@never_cache
@require_GET
def evaluation(request: HttpRequest, evaluation_id: int) -> HttpResponseBase:
    """The results, or the progress."""
    context = _context(request, evaluation_id, "result")
    row = context["evaluation"]
    if row.recipe == "rubricbench" and row.state == State.FINISHED:
        context["studies"] = list(studies(row)[:MOST_STUDIES])
    context |= {"grading": next_grades.grading(row), "corrected_title": corrected.TITLE}
    if row.recipe in RECIPES:
        context["leaking"] = training_leaks.of_config(
            row.workspace_id, RECIPES[row.recipe], row.config, row.dataset_version
        )
    return render(request, "evaluation/result.html", context)


@member(access.READER)
@never_cache
@require_GET
def evaluation_state(request: HttpRequest, evaluation_id: int) -> HttpResponseBase:
    """The state and progress as a fragment. If the state is another one than the page shows, the page is loaded again."""
    context = _context(request, evaluation_id, "result")
    if context["evaluation"].state != request.GET.get("was", context["evaluation"].state):
        return HttpResponse(status=204, headers={"HX-Refresh": "true"})
    return render(request, "evaluation/_state.html", context)


@member(access.READER)
@never_cache
@require_GET
def evaluation_cases(request: HttpRequest, evaluation_id: int) -> HttpResponseBase:
    """The cases with every requested `tag`."""
    context = _context(request, evaluation_id, "cases")
    row = context["evaluation"]
    tags = [tag for tag in request.GET.getlist("tag") if tag][: queries.MAX_TAGS]
    try:
        listed = queries.cases(row, tags, request.GET.get("cursor"))
    except Problem:
        return redirect("evaluation_cases", row.pk)
    known = (row.results or {}).get("tags", {})
    rest = request.GET.copy()
    rest["cursor"] = listed.next or ""
    context |= {
        "cases": listed.items,
        "tags": tags,
        "facets": pages.facets(known, tags),
        "total": queries.count_cases(row, tags),
        "next": rest.urlencode() if listed.next else "",
    }
    return render(request, "evaluation/cases.html", context)


@member(access.READER)
@never_cache
@require_GET
def evaluation_case(request: HttpRequest, evaluation_id: int, number: int) -> HttpResponseBase:
    """One case: prompt, responses, and the judgements about them, down to the raw text."""
    membership = require(request)
    case = access.case_read(membership, evaluation_id, number)
    context = _context(request, evaluation_id, "cases") | pages.case(case)
    return render(request, "evaluation/case.html", context)


@member(access.READER)
@never_cache
@require_GET
def evaluation_compare(request: HttpRequest, evaluation_id: int) -> HttpResponseBase:
    """The responses of all models to one prompt, side by side."""
    context = _context(request, evaluation_id, "cases")
    found = pages.side_by_side(context["evaluation"], request.GET.get("example", "").replace("\0", ""))
    if found is None:
        raise Http404("no model answered such an example")
    return render(request, "evaluation/compare.html", context | found)


@member(access.READER)
@never_cache
@require_GET
def evaluation_config(request: HttpRequest, evaluation_id: int) -> HttpResponseBase:
    context = _context(request, evaluation_id, "config")
    context |= {"config_rows": pages.config_rows(context["evaluation"]), "rerun_key": uuid4().hex}
    context["asks_judges"] = pages.asks_judges(context["evaluation"])
    return render(request, "evaluation/config.html", context)


@member(access.READER)
@require_GET
def evaluation_export(request: HttpRequest, evaluation_id: int, kind: str) -> HttpResponseBase:
    """`json`: everything with all cases; `html`: one self-contained file; `csv`: a line for each number."""
    membership = require(request)
    row = access.evaluation_read(membership, evaluation_id)
    if kind not in EXPORTS or (kind == "csv" and (row.results is None or row.recipe not in RECIPES)):
        raise Http404("no such export")
    audit.record(membership, membership.user, "evaluation.exported", row, format=kind)
    return EXPORTS[kind](row)


def _context(request: HttpRequest, evaluation_id: int, tab: str) -> dict[str, Any]:
    membership: Membership = require(request)
    row = access.evaluation_read(membership, evaluation_id)
    return {
        "evaluation": row,
        "recipe": RECIPES.get(row.recipe),
        "results": row.results,
        "tab": tab,
        "over": row.state in services.OVER,
        "may_write": membership.may(Role.RESEARCHER),
        "request_key": uuid4().hex,
    }


urls = [
    path("evaluations/<int:evaluation_id>", evaluation, name="evaluation"),
    path("evaluations/<int:evaluation_id>/state", evaluation_state, name="evaluation_state"),
    path("evaluations/<int:evaluation_id>/cases", evaluation_cases, name="evaluation_cases"),
    path("evaluations/<int:evaluation_id>/cases/<int:number>", evaluation_case, name="evaluation_case"),
    path("evaluations/<int:evaluation_id>/compare", evaluation_compare, name="evaluation_compare"),
    path("evaluations/<int:evaluation_id>/config", evaluation_config, name="evaluation_config"),
    path("evaluations/<int:evaluation_id>/export/<slug:kind>", evaluation_export, name="evaluation_export"),
]
