"""Many runs side by side, over the API."""

import json
import math
from typing import Annotated, Any, Literal

from django.http import HttpRequest, HttpResponse
from ninja import Query, Router, Schema
from pydantic import Field

from trainer.metrics.estimate import Estimate
from webapp.accounts.access import require
from webapp.accounts.models import Membership
from webapp.core.problems import Invalid
from webapp.core.requests.numbers import whole_number

from .. import access as runs_access
from ..charts import axes
from ..models import Run
from ..parameters import EachKey, JoinedKeys, keys_of
from . import columns, comparing, prompts_apart, queries
from .comparing import Curves, Family, RunComparison
from .language import QueryProblem
from .prompts_apart import PromptsApart
from .schemas import FinalOut

router = Router(tags=["runs"])
FINALS = 6  # metrics with mean, interval and difference in one answer
Ids = Annotated[str, Query(max_length=20_000, description="Up to 1,000 runs, separated by commas")]
Text = Annotated[str | None, Query(max_length=1000, description="Instead of `ids`: all runs that a query finds")]


class ComparedRun(Schema):
    id: int
    name: str
    experiment: str
    state: str
    seed: float | None
    family: int = Field(description="Its place in `families`")


class ComparedFamily(Schema):
    label: str = Field(description="The difference from the other families, or the name of its only run")
    runs: list[int] = Field(description="Places in `runs`")


class ComparedPath(Schema):
    path: str
    values: list[float | str | None]
    held: list[int] = Field(description="For each run, which of `values` it has")


class ComparedMetric(Schema):
    key: str
    label: str
    share: bool
    last: list[float | None]


class ComparedTitle(Schema):
    key: str
    label: str
    share: bool


class FinalsOut(Schema):
    key: str
    label: str
    better: str
    share: bool
    families: list[FinalOut] = Field(description="For each family, the mean over seeds with its 95% interval")
    against: list[FinalOut] | None = Field(description="Mean difference to the baseline, paired by seed")


class ComparedCounter(Schema):
    key: str
    summed: bool = Field(description="Whether its values are summed; otherwise they are those of all steps so far")


class ComparedAxis(Schema):
    name: Literal["tokens", "samples"]
    metrics: list[ComparedCounter] = Field(description="The first that a run has counts for it")


class RunsComparedOut(Schema):
    runs: list[ComparedRun]
    families: list[ComparedFamily]
    config: list[ComparedPath] = Field(description="Only paths whose values differ")
    keys: list[str] = Field(description="Every metric that any of the runs has")
    metrics: list[ComparedMetric]
    others: list[ComparedTitle] = Field(description="The names of the metrics for which there is no place in `metrics`")
    finals: list[FinalsOut]
    baseline: int | None = Field(description="Its place in `families`")
    axes: list[ComparedAxis] = Field(description="By what curves can be drawn besides step and time, and what tells it")
    unlike: dict[str, str] = Field(description="Run id -> why its result does not compare with that of most")


class ComparedCurve(Schema):
    run: int
    values: list[float | None] = Field(description="At each of `steps`; null if it has no point there")
    times: list[int | None] = Field(description="Seconds since the run's first point")


class ComparedCurves(Schema):
    key: str
    points: int = Field(description="At most this many for each run")
    exact: bool = Field(description="Whether each value is a point as it was sent, not the mean of a range of steps")
    steps: list[float]
    curves: list[ComparedCurve]


class PromptRewardOut(Schema):
    mean: float | None = Field(description="Mean reward of the prompt's responses; null if none has a reward")
    n: int = Field(description="Responses with a reward")
    missing: int = Field(description="Responses without one")


class PromptApartOut(Schema):
    key: str
    text: str = Field(description="The beginning of the prompt, 300 characters at most")
    first: PromptRewardOut
    second: PromptRewardOut
    difference: float = Field(description="Mean of the second run minus mean of the first")


class PromptsApartOut(Schema):
    steps: tuple[int | None, int | None] = Field(
        description="The step of each run's newest evaluation; null if it has none"
    )
    shared: int = Field(description="Prompts that both runs have there")
    unscored: int = Field(description="Of these, prompts without a reward in one of the runs")
    only: tuple[int, int] = Field(description="Prompts that only the first run has, and only the second")
    mean: FinalOut = Field(description="Mean difference over the shared prompts, with its 95% interval")
    prompts: list[PromptApartOut] = Field(description="The largest difference first")


@router.get("/runs/table/compare", response=RunsComparedOut, summary="Up to 1,000 runs beside each other")
def compare(
    request: HttpRequest,
    ids: Ids = "",
    q: Text = None,
    joined: JoinedKeys = None,
    each: EachKey = [],  # noqa: B006  read, never changed
    baseline: Annotated[
        int | None, Query(ge=1, lt=2**63, description="A run: others are compared with its seeds")
    ] = None,
) -> HttpResponse:
    """The differences of the configs, last values, mean and interval over seeds, and paired differences to a baseline. Runs of one
    experiment that differ only by their seed are a family. 422 if there are more than 1,000 runs: none is left out. At most 50 metrics
    of `keys` and `key`."""
    membership = runs_access.may_read(require(request))
    runs = chosen(membership, ids, q)
    keys = keys_of(joined, each)
    found = comparing.compare_runs(membership.workspace_id, runs, keys)
    return written(told(found, baseline, named=keys is not None))


@router.get("/runs/table/curves", response=ComparedCurves, summary="One metric of up to 1,000 runs")
def curves(
    request: HttpRequest,
    key: Annotated[str, Query(min_length=1, max_length=80)],
    ids: Ids = "",
    q: Text = None,
    points: Annotated[int, Query(ge=2, le=comparing.MOST_POINTS)] = comparing.MOST_POINTS,
) -> HttpResponse:
    """The more runs, the fewer points for each: 50,000 in all."""
    runs = chosen(runs_access.may_read(require(request)), ids, q)
    return written(told_curves(key, comparing.curves(runs, key, points)))


@router.get("/runs/table/prompts", response=PromptsApartOut, summary="Prompts on which two runs differ most")
def prompts(
    request: HttpRequest,
    first: Annotated[int, Query(ge=1, lt=2**63, description="A run")],
    second: Annotated[int, Query(ge=1, lt=2**63, description="The run that is compared with it")],
    limit: Annotated[int, Query(ge=1, le=prompts_apart.MOST_PROMPTS)] = 20,
) -> PromptsApart:
    """Prompts are ordered by the mean reward of the responses to each held-out prompt, at each run's newest evaluation. A prompt is the
    same in both if its example has the same key. The interval of `mean` is a bootstrap over prompts."""
    membership = runs_access.may_read(require(request))
    if first == second:
        raise Invalid("A run does not differ from itself.", {"second": "name another run"})
    rows = {run.pk: run for run in runs_access.runs_read(membership, [first, second])}
    return prompts_apart.between(rows[first], rows[second], limit)


def told(found: RunComparison, baseline: int | None, *, named: bool = False) -> dict[str, Any]:
    """The comparison as `RunsComparedOut`; `baseline` is the id of a run. `named`: the request has chosen its metrics and needs no others."""
    base = next((i for i, each in enumerate(found.families) if baseline in _ids(found, each)), None)
    return {
        "runs": _runs(found),
        "families": [{"label": each.label, "runs": each.places} for each in found.families],
        "config": found.config,
        "keys": found.keys,
        "metrics": [_named(found, key) | {"last": list(map(_short, values))} for key, values in found.metrics.items()],
        "others": [] if named else [_named(found, key) for key in found.keys if key not in found.metrics],
        "finals": [_finals(found, key, base) for key in list(found.metrics)[:FINALS]],
        "baseline": base,
        "axes": axes.usage(found.keys),
        "unlike": {str(pk): why for pk, why in found.unlike.items()},
    }


def told_curves(key: str, found: Curves) -> dict[str, Any]:
    """The curves as `ComparedCurves`."""
    drawn = [
        {
            "run": pk,
            "values": [_short(value) for value in values],
            "times": [None if time is None else round(time) for time in times],
        }
        for pk, (values, times) in found.held.items()
    ]
    return {"key": key, "points": found.points, "exact": found.exact, "steps": found.steps, "curves": drawn}


def written(body: dict[str, Any]) -> HttpResponse:
    """JSON without spaces. The schema does not validate it, because that took half of the time for a thousand runs; a test compares
    them."""
    return HttpResponse(json.dumps(body, separators=(",", ":"), ensure_ascii=False), content_type="application/json")


def chosen(membership: Membership, ids: str, query: str | None) -> list[Run]:
    """The runs in the order of the request. Raises Invalid at `ids` or `q`, and Http404 if a run is not the workspace's."""
    if query is not None:
        try:
            wanted = list(
                queries.find_runs(membership, query)
                .order_by("-pk")
                .values_list("pk", flat=True)[: comparing.MOST_RUNS + 1]
            )
        except QueryProblem as problem:
            raise queries.invalid_query(problem) from problem
    else:
        numbers = [whole_number(part.strip()) for part in ids.split(",") if part.strip()]
        wanted = list(dict.fromkeys(number for number in numbers if number is not None))
        if len(wanted) != len(set(numbers)):
            raise Invalid("These runs cannot be compared.", {"ids": "run ids, separated by commas"})
    if not 1 <= len(wanted) <= comparing.MOST_RUNS:
        where = "ids" if query is None else "q"
        raise Invalid("These runs cannot be compared.", {where: f"1 to {comparing.MOST_RUNS:,} runs at once"})
    return runs_access.runs_read(membership, wanted)


def _ids(found: RunComparison, family: Family) -> set[int]:
    return {found.runs[i].pk for i in family.places}


def _runs(found: RunComparison) -> list[dict[str, Any]]:
    family = {i: place for place, each in enumerate(found.families) for i in each.places}
    return [
        {
            "id": run.pk,
            "name": str(run),
            "experiment": run.experiment.name,
            "state": run.state,
            "seed": found.seeds[i],
            "family": family[i],
        }
        for i, run in enumerate(found.runs)
    ]


def _named(found: RunComparison, key: str) -> dict[str, Any]:
    metric = columns.metric_of(key, found.recipes)
    return {"key": key, "label": columns.metric_label(key, found.recipes), "share": bool(metric and metric.share)}


def _finals(found: RunComparison, key: str, base: int | None) -> dict[str, Any]:
    metric = columns.metric_of(key, found.recipes)
    against = None
    if base is not None:
        against = [_final(comparing.against(found, key, each, found.families[base])) for each in found.families]
    return _named(found, key) | {
        "better": metric.better if metric else "",
        "families": [_final(comparing.over_seeds(found, key, each)) for each in found.families],
        "against": against,
    }


def _final(estimate: Estimate) -> dict[str, Any]:
    told = estimate.json()
    return told | {name: _short(told[name]) for name in ("value", "low", "high")}


def _short(value: float | None) -> float | None:
    """Five digits: enough for a chart and a table, at a third of the bytes."""
    if value is None:
        return None
    short = float(f"{value:.5g}")
    # the largest numbers would be rounded to infinity, which JSON lacks
    return short if math.isfinite(short) else value
