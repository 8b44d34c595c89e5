"""The pages of a version: its examples, filtered and counted, a page for each example, and saved views."""

from typing import Any

from django.contrib import messages
from django.http import HttpRequest, HttpResponseBase
from django.shortcuts import redirect, render
from django.utils.http import urlencode
from django.views.decorators.http import require_GET, require_POST

from webapp.accounts.access import member, require
from webapp.accounts.models import Role
from webapp.core.problems import Invalid

from .. import access, queries
from ..columns.filters import CHOICES, SLICES, Filters, parse, query, words
from ..curation.structure import rubric_hints
from ..exploration import example_facts, narrowing, probes, services
from ..leakage import leaks
from ..leakage.near_leaks import VersionPair, near_leaks_of
from ..models import DatasetVersion, Probe

PAGE = 50
# filter -> words for people, and the count of a version; if that is 0, the filter would not narrow anything
CHOSEN = {
    "split": ("Split", "examples"),
    "label": ("Label", "preferences"),
    "slice": ("Surface", "preferences"),
    "hard": ("Hard pairs", "preferences"),
    "kind": ("Criteria", "criteria"),
}
YES_NO = {"rubric": ("Rubric", "rubrics"), "preferences": ("Preferences", "preferences")}


def address(version: DatasetVersion, filters: dict[str, str], page: str = "dataset_version") -> str:
    """The address of the page of a version with these filters."""
    url = str(redirect(page, version.dataset_id, version.number).url)
    return f"{url}?{urlencode(filters)}" if filters else url


@member(access.READER)
@require_GET
def dataset(request: HttpRequest, dataset_id: int, number: int | None = None) -> HttpResponseBase:
    """One version (without a number, the newest): its contents, and its examples, searched and filtered."""
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
    said = queries.undecided(member.example for member in found.items)
    context = {
        "dataset": version.dataset,
        "version": version,
        "tab": "explore",
        "rows": [
            (member, ", ".join(queries.NOT_COMPARED[name] for name in said.get(member.example_id, [])))
            for member in found.items
        ],
        "filters": filters,
        "query": set_,
        "next": urlencode({**set_, "cursor": found.next}) if found.next else "",
        "may_write": membership.may(Role.RESEARCHER),
    }
    if request.headers.get("HX-Request") and given.get("cursor"):
        return render(request, "datasets/_rows.html", context)
    return render(request, "datasets/dataset.html", {**context, **_panel(version, filters, set_)})


def _panel(version: DatasetVersion, filters: Filters, set_: dict[str, str]) -> dict[str, Any]:
    """The panel beside the rows: their number, the filters, the histograms and the saved views."""
    without = {name: {other: value for other, value in set_.items() if other != name} for name in set_}
    measured = probes.of_dataset(version.dataset_id)
    return {
        "matches": narrowing.count(version, filters),
        "leaked": leaks.of_page(version),
        "near": near_leaks_of([VersionPair(version, version)]),
        "chips": [
            (_chip(name, text, measured, filters), address(version, without[name])) for name, text in words(filters)
        ],
        "probes": [(str(probe.pk), probe, set_.get("probe") == str(probe.pk)) for probe in measured],
        "histograms": narrowing.histograms(version, filters),
        "choices": [
            (name, label, CHOICES[name], set_.get(name, ""))
            for name, (label, needs) in CHOSEN.items()
            if version.counts.get(needs) or name in set_
        ]
        + ([("reach", "Reach", CHOICES["reach"], filters.reach)] if measured or filters.reach else []),
        "yes_no": [
            (name, label) for name, (label, needs) in YES_NO.items() if version.counts.get(needs) or name in set_
        ],
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


def _chip(name: str, text: str, measured: list[Probe], filters: Filters) -> str:
    """The label of a filter; a probe is named by its model."""
    found = next((probe for probe in measured if name == "probe" and probe.pk == filters.probe), None)
    return f"pass rates of {found}" if found else text


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
    version = access.version_read(membership, view.dataset_id)
    services.delete_view(membership, view)
    messages.success(request, f"“{view.name}” is deleted. Its filters are still set here, so you can save it again.")
    return redirect(address(version, view.query))


@member(access.READER)
@require_GET
def example(request: HttpRequest, example_id: int) -> HttpResponseBase:
    """Everything known about one example; `in` names the version in which it was found, for the links to its neighbours."""
    row = access.example_read(require(request), example_id)
    record = row.record
    texts = {response.id: response for response in record.responses}
    preferences = [{"row": each, "a": texts[each.a], "b": texts[each.b]} for each in record.preferences]
    appearances = list(queries.appearances(row)[:50])
    given = request.GET.get("in", "")
    here = next(
        (each for each in appearances if str(each.version.number) == given), appearances[0] if appearances else None
    )
    context = {
        "row": row,
        "record": record,
        "preferences": preferences,
        "hints": rubric_hints(record.rubric),
        "meta": record.model_dump(mode="json")["meta"],
        "appearances": appearances,
        "here": here,
        "beside": queries.neighbour_positions(here) if here else {},
        "marks": [SLICES[mark] for mark in row.marks if mark in SLICES],
        "others": queries.other_contents(row),
        "known": example_facts.about(row),
        "rates": probes.of_example(row),
    }
    return render(request, "datasets/example.html", context)
