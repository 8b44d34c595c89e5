"""The group `recipes` of the API. Made by `python -m scripts.client` from the OpenAPI document of the server: do not edit."""

from __future__ import annotations

from typing import Any, NotRequired, TypedDict

from ..calling import Group, quote_part
from .shared import DatasetIn, LeakOut, NearOut


class ConfigCheckIn(TypedDict):
    """With a `dataset`, everything is checked that a launch checks, and what would leak from training into the
    held-out results is looked for.
    """

    config: NotRequired[dict[str, Any]]
    dataset: NotRequired[int | str | DatasetIn | None]
    model: NotRequired[str | None]


class ConfigCheckOut(TypedDict):
    """`leaks`: held-out prompts of the dataset that are trained on, in it or by what the models of the config
    were trained on; `near`: those that are nearly the same. null without a dataset.
    """

    config: dict[str, Any]
    leaks: list[LeakOut] | None
    near: list[NearOut] | None
    time: ExpectedTimeOut | None
    judges: ExpectedUseOut | None
    warnings: list[str]


class ExpectedTimeOut(TypedDict):
    """The time that all steps and evaluations would take here, by the nearest earlier run."""

    seconds: float | None
    run: int | None
    why: str


class ExpectedUseOut(TypedDict):
    """The tokens and the money that all judges together would use, by the newest runs of the recipe that asked
    them.
    """

    tokens: float | None
    money: float | None
    why: str


class FitList(TypedDict):
    items: list[FitOut]
    next: str | None


class FitNeedOut(TypedDict):
    count: str
    words: str
    train: int
    heldout: int
    left_out: list[LeftOutOut]


class FitOut(TypedDict):
    recipe: str
    fits: bool | None
    needs: list[FitNeedOut]
    step_s: float | None


class LeftOutOut(TypedDict):
    count: int
    words: str


class MetricGroupOut(TypedDict):
    id: str
    title: str
    lede: str
    small: bool
    order: int


class MetricOut(TypedDict):
    key: str
    title: str
    label: str
    help: str
    group: str
    chart: str
    unit: str
    better: str
    band: str
    band_times: float
    ends: list[str]
    count: str
    share: bool
    optional: bool
    held_out: bool
    over: str


class PresetOut(TypedDict):
    name: str
    title: str
    help: str
    config: dict[str, Any]


class RecipeList(TypedDict):
    items: list[RecipeOut]
    next: str | None


class RecipeMetricsOut(TypedDict):
    headline: str
    pulse: str
    stats: list[str]
    metrics: list[MetricOut]
    histograms: list[MetricOut]
    traces: list[TraceOut]
    groups: list[MetricGroupOut]


class RecipeNeedOut(TypedDict):
    count: str
    words: str


class RecipeOut(TypedDict):
    name: str
    title: str
    summary: str
    paper: str
    needs: list[RecipeNeedOut]
    headline: str
    presets: list[PresetOut]


class TraceOut(TypedDict):
    title: str
    help: str
    group: str
    x: str
    y: str


class Recipes(Group):
    def check_config(self, name: str, body: ConfigCheckIn) -> ConfigCheckOut:
        """Check a config; nothing is launched. The complete config, or 422 with every field that is wrong. With
        a dataset, it checks all that a launch checks: also the data and the names of models and judges; and
        it tells what would leak, how long the run would take, and what its judges would use.
        """
        return self._json(ConfigCheckOut, "POST", f"/recipes/{quote_part(name)}/check", body=body, again=True)

    def all(self) -> RecipeList:
        """The recipes of runs."""
        return self._json(RecipeList, "GET", "/recipes")

    def fit(self, *, dataset: str) -> FitList:
        """The data that a dataset has for each recipe. `fits` is null while a large version is counted: ask
        again in a minute.
        """
        return self._json(FitList, "GET", "/recipes/fit", query={"dataset": dataset})

    def get(self, name: str) -> RecipeOut:
        """One recipe, with its presets."""
        return self._json(RecipeOut, "GET", f"/recipes/{quote_part(name)}")

    def metrics_of(self, name: str) -> RecipeMetricsOut:
        """The metrics of a recipe. Titles, units, help and places of every metric: all that a chart needs."""
        return self._json(RecipeMetricsOut, "GET", f"/recipes/{quote_part(name)}/metrics")

    def schema(self, name: str) -> dict[str, Any]:
        """JSON Schema of the config. Defaults, bounds, help (`description`), `unit` and `advanced`: all that a
        form needs.
        """
        return self._json(dict[str, Any], "GET", f"/recipes/{quote_part(name)}/schema")
