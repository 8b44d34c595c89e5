"""Sweeps as the API takes and shows them."""

from datetime import datetime
from typing import Annotated, Any

from ninja import Schema
from pydantic import ConfigDict, Field
from pydantic.config import JsonDict

from webapp.datasets.api.references import DatasetRef

from ..lifecycle.schemas import LimitsIn
from ..models import Sweep, SweepTrial
from ..schemas import Id, RunStateName

Plain = bool | int | float | Annotated[str, Field(max_length=200)] | None
SweepStateName = Annotated[str, Field(json_schema_extra={"enum": Sweep.State.values})]
TrialStateName = Annotated[str, Field(json_schema_extra={"enum": SweepTrial.State.values})]
Number = Annotated[int, Field(ge=0, lt=2**31)]
WISH: JsonDict = {
    "recipe": "policy",
    "config": {"steps": 40},
    "dataset": "demo",
    "axes": [{"path": "optim.lr", "low": 1e-5, "high": 1e-3, "scale": "log"}],
    "method": "random",
    "trials": 8,
    "seeds": 3,
}


class SweepAxisIn(Schema):
    """A key of the config: its `values`, or all numbers from `low` to `high`."""

    model_config = ConfigDict(extra="forbid")

    path: str = Field(max_length=200)
    values: list[Plain] | None = Field(None, max_length=50)
    low: float | None = None
    high: float | None = None
    scale: str = Field("linear", description="`linear` or `log`: how a range is spread")
    points: int | None = Field(None, description="Number of values of the range that a grid has")


class SweepIn(Schema):
    """One of three: `recipe` with `config` and `dataset`; `run`; or `sweep`. With `run` or `sweep`, absent fields, also the experiment, are those
    of the run or the sweep, and `config` is laid over its own."""

    model_config = ConfigDict(extra="forbid", json_schema_extra={"example": WISH})

    run: Id | None = None
    sweep: Id | None = Field(
        None, description="A sweep that is searched again, with the changes that the request names"
    )
    recipe: str | None = None
    config: dict[str, Any] = Field(default_factory=dict)
    dataset: DatasetRef | None = None
    axes: list[SweepAxisIn] = Field(default_factory=list, max_length=50, description="May be absent only with `sweep`")
    method: str = Field("random", description="`grid`, `random` or `tpe`")
    metric: str = Field("", max_length=250, description="The metric that decides; empty: the recipe's headline metric")
    better: str = Field("", description="`higher` or `lower`; empty: as the recipe says of the metric")
    seeds: Number = Field(3, description="1 to 20: a trial runs once with each seed from 0 to this number minus 1")
    trials: Number = Field(10, description="1 to 1,000; a grid has as many as it has combinations")
    at_once: Number = Field(2, description="Trials under way at the same time, 1 to 50")
    seed: Number = Field(0, description="Seed of the random choices: the same seed and results make the same choices")
    first_rung: Number = Field(0, description="The step at which trials are first compared; 0: none is stopped early")
    factor: Number = Field(
        3,
        description="One trial in this many continues after a rung; each rung is this many times as far as the one before",
    )
    together: bool = Field(
        False,
        description="Whether its runs train in one process, in turns, up to 8 of them; 422 with the reason if they cannot",
    )
    limits: LimitsIn = Field(LimitsIn(), description="Limits with which each of its runs starts")
    name: str = Field("", max_length=200)
    experiment: str = Field("", max_length=200)


class SweepTrialsIn(Schema):
    model_config = ConfigDict(extra="forbid", json_schema_extra={"example": {"trials": 4}})

    trials: Number


class SweepAxisOut(Schema):
    path: str
    values: list[Plain] = Field(description="Empty for a range")
    low: float | None
    high: float | None
    scale: str
    points: int | None


class SweepEstimateOut(Schema):
    value: float | None = Field(description="Mean over the seeds that have a value; null: none has")
    low: float | None = Field(description="95% interval by Student's t; null if there is none, as with one seed")
    high: float | None
    n: int = Field(description="Seeds with a value")
    missing: int = Field(description="Seeds without one")


class SweepTrialRunOut(Schema):
    run: int
    seed: int
    state: RunStateName
    state_reason: str
    value: float | None


class SweepTrialOut(Schema):
    number: int
    state: TrialStateName
    values: dict[str, Plain]
    estimate: SweepEstimateOut
    stopped_at: int | None = Field(
        description="The step at which it was stopped early, because it was not among the best"
    )
    value_there: float | None = Field(description="The mean over seeds at that step")
    problem: str
    runs: list[SweepTrialRunOut]


class SweepOut(Schema):
    id: int
    name: str
    state: SweepStateName
    state_reason: str
    experiment: str
    recipe: str
    run: int | None = Field(description="The run that it was made from")
    axes: list[SweepAxisOut]
    method: str
    metric: str
    better: str
    seeds: int
    trials: int = Field(description="Number of trials of the whole sweep")
    launched: int
    over: int
    at_once: int
    seed: int
    first_rung: int
    factor: int
    together: bool
    limits: LimitsIn = Field(description="Limits with which each of its runs starts")
    created_at: datetime
    ended_at: datetime | None


class SweepList(Schema):
    items: list[SweepOut]
    next: str | None


class SweepTrialList(Schema):
    items: list[SweepTrialOut]
    next: str | None


class SweepStandingOut(SweepOut):
    best: SweepTrialOut | None = Field(
        description="The best of the trials with a value for every seed; null: there is none yet"
    )


class SweepRunRefused(Schema):
    run: int
    reason: str


class SweepRunsResumedOut(Schema):
    runs: list[int] = Field(description="Runs that wait in the line again")
    refused: list[SweepRunRefused] = Field(description="Failed runs that stayed as before")


class SweepContourSide(Schema):
    path: str
    low: float
    high: float
    log: bool = Field(description="Whether equal factors are equally far apart")


class SweepContourPlace(Schema):
    x: float
    y: float
    value: float = Field(description="Mean over the trials that tried both values")
    trials: list[int] = Field(description="Their numbers")


class SweepContourOut(Schema):
    x: SweepContourSide
    y: SweepContourSide
    places: list[SweepContourPlace]
    surface: list[list[float | None]] = Field(
        description="Rows of cells from the lowest y up, each the linear interpolation in its middle; null: no tried places surround it"
    )
    undefined: str = Field(description="Why there is no surface; empty if there is one")
