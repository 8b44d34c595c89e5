"""Metrics of a run over the API: points, curves, histograms."""

from typing import Annotated, Any

from django.http import HttpRequest, HttpResponse
from ninja import Query

from ..parameters import EachKey, JoinedKeys, Key, RunId, Step, keys_of, router, run_of
from . import curves as thinned
from . import spans
from .schemas import CurvesOut, MetricHistogramsOut, MetricsOut, StepSpansOut


@router.get("/runs/{run_id}/metrics", response=MetricsOut, summary="Every point of one metric")
def metrics(
    request: HttpRequest,
    run_id: RunId,
    key: Key,
    after_step: Step | None = None,
    limit: Annotated[int, Query(ge=1, le=thinned.MAX_POINTS_PER_PAGE)] = thinned.MAX_POINTS_PER_PAGE,
) -> dict[str, Any]:
    return thinned.points(run_of(request, run_id), key, after_step, limit)


@router.get("/runs/{run_id}/curves", response=CurvesOut, summary="Curves of metrics, thinned so that every spike stays")
def curves(
    request: HttpRequest,
    run_id: RunId,
    joined: JoinedKeys = None,
    each: EachKey = [],  # noqa: B006  read, never changed
    max_points: Annotated[int, Query(ge=2, le=5000)] = 600,
) -> HttpResponse:
    """The curves of the keys that `keys` and `key` name, or of all keys if both are left out."""
    found = thinned.curves(run_of(request, run_id), keys_of(joined, each), max_points)
    return HttpResponse(found, content_type="application/json; charset=utf-8")


@router.get("/runs/{run_id}/histograms", response=MetricHistogramsOut, summary="One metric's histograms over the steps")
def histograms(request: HttpRequest, run_id: RunId, key: Key) -> dict[str, Any]:
    return thinned.histograms(run_of(request, run_id), key)


@router.get("/runs/{run_id}/spans", response=StepSpansOut, summary="The time of one step by kinds of work")
def step_spans(request: HttpRequest, run_id: RunId, step: Step | None = None) -> dict[str, Any]:
    """A run keeps the spans of its newest 1,000 steps. The newest step is taken if `step` is left out."""
    return spans.of_step(run_of(request, run_id).id, step)
