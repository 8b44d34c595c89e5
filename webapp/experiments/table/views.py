"""The page of all runs. Reading needs the role reviewer. Changes go through the API and the forms of a run's page."""

from collections.abc import Callable, Iterator
from dataclasses import replace
from typing import Any

from django.contrib import messages
from django.http import Http404, HttpRequest, HttpResponse, HttpResponseBase, StreamingHttpResponse
from django.shortcuts import redirect, render
from django.utils.http import urlencode
from django.views.decorators.cache import never_cache
from django.views.decorators.http import require_GET, require_POST

from trainer.contracts.plurals import with_noun
from webapp.accounts.access import member, require
from webapp.accounts.models import Membership, Role
from webapp.core.problems import Conflict, Invalid, Problem
from webapp.core.requests.numbers import whole_number

from .. import access as runs_access
from ..models import Experiment, Run
from . import access, columns, csv_export, grouping, label_form, queries, seed_groups, services
from .api import split
from .compare_api import chosen
from .language import QueryProblem, quote_text
from .models import RunView
from .queries import Layout, TablePage

ASKED = ("q", "sort", "columns", "cursor", "view", "fold", "group")

UNFOLDED = 50  # rows below a group


@member(runs_access.READER)
@never_cache
@require_GET
def runs(request: HttpRequest) -> HttpResponseBase:
    """The runs of the workspace, by the query of the address, or by the view that this person has chosen."""
    membership = require(request)
    view = _view(request, membership)
    layout = _layout(request, view)
    folds = "fold" in request.GET or bool(view and view.folded)
    context = _context(membership, layout, view, folds)
    try:
        context |= _page(_pages(layout, folds)(membership, layout, request.GET.get("cursor")), layout, folds)
    except QueryProblem as problem:
        context["problem"] = problem
        context["marked"] = (layout.query[: problem.start], layout.query[problem.start : problem.end] or " ")
    except Invalid as problem:
        # cursor, order or group belong to another list, or were typed by hand: begin at the beginning
        if why := problem.fields.get("group"):
            messages.info(request, f"{problem.message} {why}")
        return redirect(f"{request.path}?{urlencode({'q': layout.query})}")
    return render(request, "experiments/runs.html", context)


@member(runs_access.READER)
@never_cache
@require_GET
def rows(request: HttpRequest) -> HttpResponseBase:
    """The first rows of a query, which unfold below a row of the table, and the way to the others."""
    membership = require(request)
    layout = replace(_layout(request, None), group="")
    folds = "fold" in request.GET
    try:
        page = _pages(layout, folds)(membership, layout, None, UNFOLDED)
    except (QueryProblem, Invalid):
        raise Http404("not a query of the table") from None
    asked = urlencode(_asked(layout, folds) | {"sort": page.order.name})
    context = {"rows": page.rows, "folds": folds, "columns": page.columns, "asked": asked, "more": page.next}
    return render(request, "experiments/table/_unfolded.html", context)


def _pages(layout: Layout, folds: bool) -> Callable[..., TablePage[Any]]:
    return grouping.page if layout.group else seed_groups.page if folds else queries.page


def _layout(request: HttpRequest, view: RunView | None) -> Layout:
    plain = Layout(view.query, view.sort, tuple(view.columns), view.group_by) if view else Layout()
    shown = request.GET.get("columns")
    return Layout(
        _query(request, plain.query),
        _typed(request.GET.get("sort", plain.sort)) or queries.NEWEST,
        plain.columns if shown is None else split(_typed(shown)),
        _typed(request.GET.get("group", plain.group)),
    )


def _typed(text: str) -> str:
    return text.replace("\0", "").strip()


def _view(request: HttpRequest, membership: Membership) -> RunView | None:
    """The view that the address names; if the address asks for nothing, the view that the person has chosen."""
    if not any(name in request.GET for name in (*ASKED, "state", "experiment")):
        return queries.chosen_view(membership)
    number = whole_number(request.GET.get("view", ""))
    return queries.views(membership.workspace_id).filter(pk=number).first() if number else None


def _query(request: HttpRequest, plain: str) -> str:
    """The query, with the filters of addresses from earlier versions: a state, and the id of an experiment."""
    terms = []
    if state := _typed(request.GET.get("state", "")):
        terms.append(f"state:{quote_text(state)}")
    if number := _typed(request.GET.get("experiment", "")):
        ours = Experiment.objects.filter(workspace_id=require(request).workspace_id, pk=whole_number(number) or 0)
        named = ours.first()
        terms.append(f"experiment:{quote_text(named.name)}" if named else "run:0")
    return " ".join([*terms, _typed(request.GET.get("q", "" if terms else plain))]).strip()


def _context(membership: Membership, layout: Layout, view: RunView | None, folds: bool) -> dict[str, Any]:
    return {
        "folds": folds,
        "layout": layout,
        "view": view,
        "views": [(each, urlencode({"view": each.pk})) for each in queries.views(membership.workspace_id)],
        "mine": queries.chosen_view(membership),
        "shown": ",".join(layout.columns),
        "cleared": urlencode(_asked(replace(layout, query=""), folds)),
        "groups": grouping.names(membership.workspace_id, layout.group),
        "any": Run.objects.filter(experiment__workspace_id=membership.workspace_id).exists(),
        "may_write": membership.may(Role.RESEARCHER),
        "most": services.MAX_AT_ONCE,
        "most_grouped": grouping.MOST_RUNS,
    }


def _page(page: TablePage[Any], layout: Layout, folds: bool) -> dict[str, Any]:
    asked = _asked(layout, folds)
    following = urlencode(asked | {"sort": page.order.name, "cursor": page.next}) if page.next else ""
    heads = [_head(column, page, asked) for column in page.columns]
    named = _head(columns.Column("name", "Run", columns.Source.RUN, "name"), page, asked)
    return {
        "page": page,
        "rows": _linked(page, asked) if isinstance(page, grouping.GroupPage) else page.rows,
        "heads": heads,
        "name_head": named,
        "following": following,
        "next": page.next,
    }


def _linked(page: grouping.GroupPage, asked: dict[str, str]) -> list[tuple[grouping.GroupRow, str]]:
    """The groups, each with the address of its runs; empty if no query finds them."""
    sort = queries.NEWEST if page.order.column == grouping.TAGS else page.order.name
    plain = {name: value for name, value in asked.items() if name != "group"} | {"sort": sort}
    return [(row, urlencode(plain | {"q": row.query}) if row.query is not None else "") for row in page.rows]


def _asked(layout: Layout, folds: bool) -> dict[str, str]:
    """The address of the table without its order."""
    asked = {"q": layout.query, "columns": ",".join(layout.columns)}
    return asked | ({"fold": "seeds"} if folds else {}) | ({"group": layout.group} if layout.group else {})


def _head(column: columns.Column, page: TablePage[Any], asked: dict[str, str]) -> dict[str, Any]:
    """A column's head, and the address behind it. The first click sorts numbers and times in descending order, and words in ascending
    order."""
    sorted_now = page.order.column.name == column.name
    down = not page.order.down if sorted_now else not column.is_text or column.name in ("created", "started", "ended")
    sort = ("-" if down else "") + column.name
    direction = ("descending" if page.order.down else "ascending") if sorted_now else "none"
    return {"column": column, "direction": direction, "link": urlencode(asked | {"sort": sort})}


@member(runs_access.READER)
@never_cache
@require_GET
def count(request: HttpRequest) -> HttpResponseBase:
    """A fragment with the number of runs that the query finds. Counting them may take longer than reading a page."""
    try:
        number, more = queries.count(require(request), _typed(request.GET.get("q", "")))
    except QueryProblem:
        return HttpResponse("")
    return render(request, "experiments/table/_count.html", {"number": number, "more": more})


@member(runs_access.READER)
@never_cache
def csv(request: HttpRequest) -> HttpResponseBase:
    """The shown columns of all runs that the query finds, or only of those with the `ids` in the body."""
    membership = require(request)
    sent = request.POST if request.method == "POST" else request.GET
    asked = {
        name: value.replace("\0", "") for name, value in sent.dict().items()
    }  # the file begins before the database is asked
    layout = Layout(_typed(asked.get("q", "")), asked.get("sort") or queries.NEWEST, split(asked.get("columns", "")))
    ids = [number for part in asked.get("ids", "").split(",") if (number := whole_number(part)) is not None]
    try:
        lines: Iterator[str] = csv_export.lines(membership, layout, queries.ids_of(membership, ids) if ids else None)
    except (QueryProblem, Problem) as problem:
        messages.error(request, problem.message)
        return redirect("runs")
    headers = {"Content-Disposition": 'attachment; filename="runs.csv"'}
    return StreamingHttpResponse(lines, content_type="text/csv; charset=utf-8", headers=headers)


@member(runs_access.READER)
@never_cache
@require_GET
def compare(request: HttpRequest) -> HttpResponseBase:
    """`?ids=1,2`, `?ids=1&ids=2`, or `?q=` for all runs that a query finds, up to 1,000. The page asks the API for the rest."""
    membership = require(request)
    query = request.GET.get("q")
    ids = ",".join(request.GET.getlist("ids"))
    if query is None and any(whole_number(part.strip()) is None for part in ids.split(",") if part.strip()):
        raise Http404("not run ids")
    if query is None:
        ids, gone = _there(membership, ids)
        if gone:
            told = f"{with_noun(gone, 'runs')} of this address {'is' if gone == 1 else 'are'} not here any more."
            messages.info(request, told)
        if gone and not ids:
            return redirect("runs")
    try:
        found = chosen(membership, ids, query)
    except Problem as problem:
        messages.info(request, f"{problem.message} {' '.join(problem.fields.values()).capitalize()}.")
        return redirect("runs")
    if len(found) < 2:
        messages.info(request, "Choose at least two runs to compare.")
        return redirect("runs")
    asked = urlencode({"ids": ids} if query is None else {"q": query})
    return render(
        request,
        "experiments/compare.html",
        {"count": len(found), "asked": asked, "may_write": membership.may(Role.RESEARCHER)},
    )


def _there(membership: Membership, ids: str) -> tuple[str, int]:
    """The ids of an address that are runs of the workspace, and how many are not: an address outlives runs that are deleted."""
    asked = [whole_number(part.strip()) for part in ids.split(",") if part.strip()]
    ours = set(queries.ids_of(membership, asked))
    there = [each for each in asked if each in ours]
    return ",".join(map(str, there)), len(asked) - len(there)


@member(runs_access.WRITER)
@require_POST
def run_labels(request: HttpRequest, run_id: int) -> HttpResponseBase:
    """Stores tags, group and notes from the form of a run's page, as far as the person has changed them there. Notes that cannot be stored
    come back in the form."""
    membership = require(request)
    run = runs_access.run_write(membership, run_id)
    given = request.POST.dict()
    for field, save in label_form.FIELDS.items():
        try:
            if label_form.is_changed(given, field):
                save(membership, run, given)
        except (Conflict, Invalid) as problem:
            label_form.keep(request.session, run, field, given)
            why = f" {' '.join(problem.fields.values()).capitalize()}." if problem.fields else ""
            messages.error(request, f"{problem.message}{why}")
    return redirect("run", run_id)


@member(runs_access.WRITER)
@require_POST
def view_delete(request: HttpRequest, view_id: int) -> HttpResponseBase:
    membership = require(request)
    view = access.view_write(membership, view_id)
    services.delete_view(membership, view)
    messages.success(request, f"Deleted the view “{view.name}”.")
    return redirect("runs")
