"""Points and curves, as OpenAPI shows them."""

from datetime import datetime

from ninja import Schema
from pydantic import Field


class MetricHistogramOut(Schema):
    edges: list[float]
    counts: list[int]


class MetricPointOut(Schema):
    step: int
    value: float | None = Field(
        description="Null where there is only a histogram, or where `not_finite` says what it is"
    )
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


class MetricHistogramsOut(Schema):
    key: str
    steps: list[HistogramStepOut]
