"""Looking into a version: its examples narrowed and counted, one page for each, views kept under a name."""

from typing import Any

from django.contrib import messages
from django.http import HttpRequest, HttpResponseBase
from django.shortcuts import redirect, render
from django.utils.http import urlencode
from django.views.decorators.http import require_GET, require_POST

from webapp.accounts.access import member, require
from webapp.accounts.models import Role
from webapp.core.problems import Invalid

from .. import access, explore, queries, services
from ..filters import CHOICES, Filters, parse, query, words
from ..models import DatasetVersion

PAGE = 50
CHOSEN = {
    "split": "Split",
    "label": "Label",
    "slice": "Surface",
    "hard": "Hard pairs",
    "kind": "Kind of criterion",
}
YES_NO = (("rubric", "Rubric"), ("preferences", "Preferences"))


def address(version: DatasetVersion, filters: dict[str, str], page: str = "dataset_version") -> str:
    """The page of a version with these filters set."""
    url = str(redirect(page, version.dataset_id, version.number).url)
    return f"{url}?{urlencode(filters)}" if filters else url


@member(access.READER)
@require_GET
def dataset(request: HttpRequest, dataset_id: int, number: int | None = None) -> HttpResponseBase:
    """One version (the newest without a number): what it holds, and its examples, searched and filtered."""
    membership = require(request)
    version = access.version_read(membership, dataset_id, number)
    given = request.GET
    try:
        filters = parse(given)
        found = queries.examples(version, filters, given.get("cursor"), PAGE)
    except Invalid as problem:  # typed by hand: begin at the beginning, and say what was not understood
        for field, reason in problem.fields.items():
            messages.warning(request, f"{field} {reason}")
        return redirect("dataset_version", dataset_id, version.number)
    set_ = query(filters)
    context = {
        "dataset": version.dataset,
        "version": version,
        "tab": "explore",
        "rows": found.items,
        "filters": filters,
        "query": set_,
        "next": urlencode({**set_, "cursor": found.next}) if found.next else "",
        "may_write": membership.may(Role.RESEARCHER),
    }
    if request.headers.get("HX-Request") and given.get("cursor"):
        return render(request, "datasets/_rows.html", context)
    return render(request, "datasets/dataset.html", {**context, **_panel(version, filters, set_)})


def _panel(version: DatasetVersion, filters: Filters, set_: dict[str, str]) -> dict[str, Any]:
    """What stands beside the rows: how many there are, what narrows them, how they are spread, what was saved."""
    matches, exact = explore.count(version, filters)
    without = {name: {other: value for other, value in set_.items() if other != name} for name in set_}
    return {
        "matches": matches,
        "exact": exact,
        "chips": [(text, address(version, without[name])) for name, text in words(filters)],
        "histograms": explore.histograms(version, filters),
        "choices": [(name, label, CHOICES[name], set_.get(name, "")) for name, label in CHOSEN.items()],
        "yes_no": YES_NO,
        "facets": [
            (name, version.facets.get(name, {}), set_.get(name, "")) for name in ("domain", "source", "verifier")
        ],
        "views": [
            {"row": view, "url": address(version, view.query), "open": view.query == set_}
            for view in queries.views(version.dataset)
        ],
        "query_string": urlencode(set_),
        "clear": address(version, {}),
    }


@member(access.READER)
@require_POST
def view_save(request: HttpRequest, dataset_id: int, number: int) -> HttpResponseBase:
    membership = require(request)
    version = access.version_read(membership, dataset_id, number)
    try:
        filters = parse(request.GET)
        view = services.save_view(membership, version.dataset, request.POST.get("name", ""), filters)
        messages.success(request, f"Saved as “{view.name}”.")
    except Invalid as problem:
        messages.error(request, f"{problem.message} {' '.join(problem.fields.values())}")
        return redirect("dataset_version", dataset_id, number)
    return redirect(address(version, view.query))


@member(access.READER)
@require_POST
def view_delete(request: HttpRequest, view_id: int) -> HttpResponseBase:
    membership = require(request)
    view = access.view_write(membership, view_id)
    services.delete_view(membership, view)
    messages.success(request, f"“{view.name}” is forgotten.")
    return redirect("dataset", view.dataset_id)


@member(access.READER)
@require_GET
def example(request: HttpRequest, example_id: int) -> HttpResponseBase:
    row = access.example_read(require(request), example_id)
    record = row.record
    texts = {response.id: response for response in record.responses}
    preferences = [{"row": each, "a": texts[each.a], "b": texts[each.b]} for each in record.preferences]
    context = {
        "row": row,
        "record": record,
        "preferences": preferences,
        "meta": record.model_dump(mode="json")["meta"],
        "appearances": list(queries.appearances(row)[:50]),
    }
    return render(request, "datasets/example.html", context)
