"""Points and curves, as OpenAPI shows them."""

from datetime import datetime

from ninja import Schema
from pydantic import Field


class MetricHistogramOut(Schema):
    edges: list[float]
    counts: list[int]


class MetricPointOut(Schema):
    step: int
    value: float | None = Field(description="Null if there is only a histogram, or if `not_finite` says what it is")
    not_finite: str = Field(description="NaN, Infinity or -Infinity of a run that was logged from outside; else empty")
    time: datetime
    histogram: MetricHistogramOut | None


class MetricsOut(Schema):
    key: str
    points: list[MetricPointOut]
    next: int | None = Field(description="The `after_step` that continues, or null")


class CurveOut(Schema):
    steps: list[int]
    values: list[float]
    times: list[float] = Field(description="Seconds since 1970, one per step")


class CurvesOut(Schema):
    curves: dict[str, CurveOut]
    more: list[str] = Field(
        description="Keys that were asked for and are not in this answer, because it holds 200 curves: ask for them by `keys`"
    )
    keys: list[str]
    histograms: list[str]
    last_seq: int


class HistogramStepOut(MetricHistogramOut):
    step: int


class StepSpanOut(Schema):
    work: str = Field(description="rollout, reward, learner, evaluation, saving or other")
    name: str = Field(
        description="The phase, the part of the reward or the worker; empty for a kind of work as a whole"
    )
    inside: int | None = Field(description="The place of the span around it in the list; null: the step itself")
    start: float = Field(description="Seconds after the begin of the step")
    seconds: float
    pieces: int = Field(description="Of this many neighbours it was made, because a step has a bounded number of spans")


class StepSpansOut(Schema):
    step: int | None = Field(description="Null if the run has recorded nothing of the step")
    seconds: float | None
    spans: list[StepSpanOut] = Field(description="Kinds of work that follow one another, with what is inside of each")
    beside: list[StepSpanOut] = Field(description="Work that ran at the same time: parts of the reward, workers")
    first: int | None = Field(description="The first step whose spans are kept")
    last: int | None


class MetricHistogramsOut(Schema):
    key: str
    steps: list[HistogramStepOut]
