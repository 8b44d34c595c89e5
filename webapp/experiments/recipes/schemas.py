"""Recipes, as OpenAPI shows them."""

from typing import Any

from ninja import Schema
from pydantic import Field


class RecipeNeedOut(Schema):
    count: str = Field(description="A key of a dataset version's counts")
    words: str


class PresetOut(Schema):
    name: str
    title: str
    help: str
    config: dict[str, Any] = Field(description="The fields that it sets, as `config` of a launch takes them")


class RecipeOut(Schema):
    name: str
    title: str
    summary: str
    paper: str
    needs: list[RecipeNeedOut]
    headline: str = Field(description="The metric that says how good the result is")
    presets: list[PresetOut] = Field(description="Values with which a config can begin")


class MetricOut(Schema):
    key: str = Field(description="May end in `*`, which stands for names that the config gives")
    title: str
    label: str = Field(description="Its name outside of a chart")
    help: str
    group: str
    chart: str = Field(description="Title of the chart it shares; empty: one of its own")
    unit: str
    better: str
    band: str = Field(description="Key of the metric that is drawn as a band around it")
    band_times: float
    ends: list[str] = Field(description="Keys of an interval's lower and upper end; empty: it has none")
    count: str = Field(description="Key of the number of cases on which its newest value is based; empty: not known")
    share: bool
    optional: bool = Field(description="Not every run of the recipe sends it")
    held_out: bool = Field(description="Measured by evaluations only")
    over: str = Field(description="For a histogram that is a part of another one, bin by bin: the key of the other")


class MetricGroupOut(Schema):
    id: str
    title: str
    lede: str
    small: bool
    order: int


class TraceOut(Schema):
    title: str
    help: str
    group: str
    x: str = Field(description="Key of the metric on the horizontal axis")
    y: str = Field(description="Key of the metric on the vertical axis")


class RecipeMetricsOut(Schema):
    headline: str
    pulse: str = Field(description="The curve that lists draw small")
    stats: list[str]
    metrics: list[MetricOut]
    histograms: list[MetricOut]
    traces: list[TraceOut] = Field(description="Pairs of metrics drawn against each other, a point for each evaluation")
    groups: list[MetricGroupOut]


class RecipeList(Schema):
    items: list[RecipeOut]
    next: str | None


class LeftOutOut(Schema):
    count: int
    words: str


class FitNeedOut(RecipeNeedOut):
    train: int
    heldout: int
    left_out: list[LeftOutOut]


class FitOut(Schema):
    recipe: str
    fits: bool | None
    needs: list[FitNeedOut]
    step_s: float | None = Field(description="Median seconds of a step in the last runs here")


class FitList(Schema):
    items: list[FitOut]
    next: str | None
