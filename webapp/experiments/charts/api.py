"""Custom charts of runs over the API. Reading and one's own pins need the role reviewer, changing charts researcher."""

from typing import Annotated, Any

from django.http import HttpRequest
from ninja import Query, Status

from webapp.accounts.access import require

from ..access import run_read, run_write
from ..models import CustomChart
from ..parameters import RunId, router, run_of
from . import access, computing, queries, services
from . import schemas as s


def _chart(row: CustomChart) -> dict[str, Any]:
    return {name: getattr(row, name) for name in queries.SHOWN}


def _wanted(payload: s.CustomChartIn) -> services.ChartContent:
    return services.ChartContent(payload.title, payload.expressions, payload.lowest, payload.highest)


@router.get("/runs/{run_id}/charts", response=s.CustomChartList, summary="Charts that people made for runs like it")
def list_charts(request: HttpRequest, run_id: RunId) -> dict[str, Any]:
    """The charts of the run's recipe in the workspace, in their order."""
    membership, run = require(request), run_of(request, run_id)
    return queries.shown(membership, run) | {"next": None}


@router.post("/runs/{run_id}/charts", response={201: s.CustomChartOut}, summary="Create a chart of expressions")
def make_chart(request: HttpRequest, run_id: RunId, payload: s.CustomChartIn) -> Status[dict[str, Any]]:
    """The chart is for all runs of its recipe, and for everybody in the workspace. 422 has the place of the error in `place`."""
    membership = require(request)
    run = run_write(membership, run_id)
    return Status(201, _chart(services.create(membership, run, _wanted(payload))))


@router.put("/runs/{run_id}/charts/{chart_id}", response=s.CustomChartOut, summary="Change a chart of expressions")
def change_chart(request: HttpRequest, run_id: RunId, chart_id: RunId, payload: s.CustomChartIn) -> dict[str, Any]:
    membership = require(request)
    chart = access.chart_write(membership, run_id, chart_id)
    return _chart(services.change(membership, chart, _wanted(payload)))


@router.put("/runs/{run_id}/charts/{chart_id}/place", response={204: None}, summary="Move a chart among the others")
def move_chart(request: HttpRequest, run_id: RunId, chart_id: RunId, payload: s.PlaceIn) -> Status[None]:
    membership = require(request)
    services.move(membership, access.chart_write(membership, run_id, chart_id), payload.place)
    return Status(204, None)


@router.delete("/runs/{run_id}/charts/{chart_id}", response={204: None}, summary="Remove a chart of expressions")
def remove_chart(request: HttpRequest, run_id: RunId, chart_id: RunId) -> Status[None]:
    """A removed chart can be restored for a day."""
    membership = require(request)
    services.remove(membership, access.chart_write(membership, run_id, chart_id))
    return Status(204, None)


@router.post("/runs/{run_id}/charts/{chart_id}/restore", response=s.CustomChartOut, summary="Restore a removed chart")
def restore_chart(request: HttpRequest, run_id: RunId, chart_id: RunId) -> dict[str, Any]:
    membership = require(request)
    return _chart(services.bring_back(membership, access.chart_write(membership, run_id, chart_id, removed=True)))


@router.put("/runs/{run_id}/pinned-charts", response=s.PinsOut, summary="Pin a chart for yourself")
def pin_chart(request: HttpRequest, run_id: RunId, payload: s.PinIn) -> dict[str, Any]:
    """You see it first on the pages of all runs of this recipe."""
    membership = require(request)
    run = run_read(membership, run_id)
    return {"charts": services.pin(membership, run, payload.chart, payload.pinned)}


@router.get(
    "/runs/{run_id}/computed/check", response=s.ReadExpressions, summary="Check whether expressions can be read"
)
def check_expressions(
    request: HttpRequest,
    run_id: RunId,
    expression: Annotated[list[s.Expression], Query(min_length=1, max_length=8)],
) -> dict[str, Any]:
    """Nothing is computed. 422 has the place of the error in `place`."""
    run_of(request, run_id)
    found = services.parsed(expression)
    return {"items": [{"expression": each.text, "keys": each.keys} for each in found], "next": None}


@router.get("/runs/{run_id}/computed", response=s.ComputedOut, summary="Curves of expressions over metrics")
def computed(
    request: HttpRequest,
    run_id: RunId,
    expression: Annotated[list[s.Expression], Query(min_length=1, max_length=8)],
    max_points: Annotated[int, Query(ge=2, le=5000)] = 1000,
) -> dict[str, Any]:
    """Such as `reward/mean - 0.1 * policy/kl`. Every stored point is read, and the result is thinned. 422 has the place of the error in `place`."""
    return computing.curves(run_of(request, run_id), services.parsed(expression), max_points)
