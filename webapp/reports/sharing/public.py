"""A report as people without an account see it: its page, and what its charts ask for."""

from dataclasses import replace
from typing import Any

from django.http import HttpRequest, HttpResponse
from django.shortcuts import render

from webapp.experiments.models import Run
from webapp.experiments.sharing import comparison_contents, kinds
from webapp.experiments.sharing.access import NothingShared, OpenedLink
from webapp.experiments.sharing.public import opens
from webapp.experiments.table import compare_api, comparing

from .. import block_contents, language, sources
from ..block_contents import ShownBlock
from ..language import ReportBlock, ReportWords
from . import access, queries
from .queries import REPORT


def page(request: HttpRequest, opened: OpenedLink) -> HttpResponse:
    version = access.opened_version(opened)
    parts = _asking(block_contents.pieces_of(access.reader(opened), version.body), request.path)
    return render(request, "shared/report.html", {"version": version, "parts": parts, "shared": True})


def _asking(parts: list[ReportWords | ShownBlock], path: str) -> list[ReportWords | ShownBlock]:
    """The parts with charts that ask the link, by their place among the charts, and name no run and no query."""
    found: list[ReportWords | ShownBlock] = []
    place = 0
    for part in parts:
        if isinstance(part, ShownBlock) and part.kind == "chart":
            place += 1
            asks = {"source": f"{path}/charts/{place}/", "asked": ""}
            part = replace(part, facts={**part.facts, **asks}) if part.facts else part
        found.append(part)
    return found


@opens(REPORT)
def chart(request: HttpRequest, opened: OpenedLink, place: int) -> HttpResponse:
    """The runs of a chart and how they are put together."""
    block, runs = _chart(opened, place)
    found = comparing.compare_runs(opened.link.workspace_id, runs, [], comparison_contents.value)
    return compare_api.written(
        {
            "runs": [{"id": i, "name": str(run), "state": run.state} for i, run in enumerate(found.runs, 1)],
            "families": [{"label": each.label, "runs": each.places} for each in found.families],
        }
    )


@opens(REPORT)
def chart_curves(request: HttpRequest, opened: OpenedLink, place: int) -> HttpResponse:
    """`?key=` is one of the metrics of the chart."""
    block, runs = _chart(opened, place)
    key = request.GET.get("key", "")
    if key not in block.given["metric"]:
        raise NothingShared
    told = compare_api.told_curves(key, comparing.curves(runs, key))
    places = {run.pk: i for i, run in enumerate(runs, 1)}
    curves: list[dict[str, Any]] = [{**curve, "run": places[curve["run"]]} for curve in told["curves"]]
    return compare_api.written({**told, "curves": curves})


def _chart(opened: OpenedLink, place: int) -> tuple[ReportBlock, list[Run]]:
    """The chart at this place, from 1, with the runs that are left of it."""
    pieces = language.pieces(access.opened_version(opened).body)
    charts = [part for part in pieces if isinstance(part, ReportBlock) and part.kind == "chart"]
    if not 1 <= place <= len(charts) or charts[place - 1].problems:
        raise NothingShared
    block = charts[place - 1]
    try:
        ids = sources.block_runs(access.reader(opened), block).ids
    except sources.NothingToShow:
        return block, []
    by_id = {run.pk: run for run in opened.runs}
    return block, [by_id[run_id] for run_id in ids]


kinds.KINDS[REPORT] = kinds.SharedKind(page, queries.listed)
