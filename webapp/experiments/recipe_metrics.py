"""The metrics that a recipe declares, as JSON for pages and API. No page knows a metric in another way."""

from dataclasses import asdict, dataclass, replace
from functools import cache
from typing import Any

from trainer.config import RECIPES, ConfigInvalid, OnPolicyConfig, Recipe, resolve, upgrade_stored
from trainer.config.metrics.common import GROUPS
from trainer.config.recipe import HELD_OUT, Metric
from webapp.datasets.versions import training_counts

from .models import Run

FIRST = ":first"
"""The ending of a metric's name in a summary that keeps its first value."""
SAMPLES = {"rollout": "Rollouts", "pair": "Pairs", "text": "Texts", "judgement": "Judgements", "episode": "Episodes"}
"""Viewer of samples -> the name of its tab."""


def recipe_of(name: str) -> Recipe | None:
    """None for a run of a recipe that this version no longer has: its keys are then shown as they are."""
    return RECIPES.get(name)


def label(recipe: str, key: str) -> str:
    """The label of a key; the key itself if nobody has declared it."""
    found = recipe_of(recipe)
    metric = found.metric(key) if found else None
    return metric.label if metric else key


def measured(value: float | None, metric: Metric) -> str:
    """A value as its metric is read: per cent, three decimals, or thousands."""
    if value is None:
        return "–"
    if metric.share:
        return f"{value:.1%}" if abs(value) < 0.1 else f"{value:.0%}"
    return f"{value:,.0f}" if abs(value) >= 1000 else f"{value:.3f}" if abs(value) < 10 else f"{value:.1f}"


def remembers(recipe: str, key: str) -> bool:
    """Whether a run's summary keeps the last value of this key."""
    found = recipe_of(recipe)
    return found.remembers(key) if found else key.startswith(HELD_OUT)


def keeps_first(recipe: str, key: str) -> bool:
    """Whether the summary keeps its first value too."""
    found = recipe_of(recipe)
    return key.startswith(HELD_OUT) or (found is not None and key == found.headline)


def brief(run: Run) -> str:
    """One line about the run: the title of its recipe, and the values of the config that the recipe names."""
    if run.is_logged:
        return "Logged from outside"
    found = recipe_of(run.recipe)
    return " · ".join([found.title, *found.says(run.config)]) if found else run.recipe


def phases(run: Run) -> list[dict[str, str]]:
    """The phases that the run's config plans, in order: `{"when", "what", "never"}`."""
    found = recipe_of(run.recipe)
    return [line._asdict() for line in found.schema.outline(run.config)] if found else []


def samples(recipe: str) -> str:
    found = recipe_of(recipe)
    return found.samples if found else "rollout"


def samples_title(recipe: str) -> str:
    """The name of the tab with the samples of its runs."""
    return SAMPLES[samples(recipe)]


def reward(run: Run) -> tuple[list[dict[str, Any]], str]:
    """The parts of the run's reward as JSON, and the expression that puts them together; of a task those that its config makes. Without
    parts if nothing is rewarded, or if this version cannot read the config any more."""
    listed = run.config.get("rewards")
    if listed is not None:
        parts = [each for each in listed if isinstance(each, dict) and "name" in each]
        return parts, str(run.config.get("reward_expression") or "")
    try:
        config = resolve(run.recipe, upgrade_stored(run.recipe, run.config))
    except ConfigInvalid:
        return [], ""
    if not isinstance(config, OnPolicyConfig):
        return [], ""
    made = config.composition
    return [part.model_dump(mode="json") for part in made.parts], made.expression


@dataclass(frozen=True)
class RunResult:
    """The recipe's headline metric before and after training; None if there is no value yet.

    `metric` is None if the recipe is unknown to this version. `interval` is the 95% interval of `last`, and `n` the number of cases behind
    it, if they are known.
    """

    metric: Metric | None
    first: float | None
    last: float | None
    interval: tuple[float, float] | None = None
    n: int | None = None

    @property
    def gain(self) -> float | None:
        return None if self.first is None or self.last is None else self.last - self.first

    @property
    def better(self) -> bool | None:
        """Whether the gain is an improvement; None if nothing changed, or if the metric has no better side."""
        if self.metric is None or not self.metric.better or not self.gain:
            return None
        return (self.gain > 0) == (self.metric.better == "higher")


def unmeasured(run: Run) -> frozenset[str]:
    """The keys of declared metrics of which the run has no value, by its config and its data; empty if that is not known without a query."""
    version = run.dataset_version if Run._meta.get_field("dataset_version").is_cached(run) else None
    if version is None or "config" in run.get_deferred_fields() or "training" in version.get_deferred_fields():
        return frozenset()
    counts = training_counts.stored_counts(version)
    if counts is None or recipe_of(run.recipe) is None:
        return frozenset()
    try:
        return resolve(run.recipe, upgrade_stored(run.recipe, run.config)).unmeasured(counts)
    except ConfigInvalid:
        return frozenset()


def result(run: Run) -> RunResult:
    """The result from the run's summary, without a query. Before its first value, the metric that it will be."""
    recipe = recipe_of(run.recipe)
    key = next((key for key in _headlines(recipe) if key in run.summary), None) or _headline(recipe, unmeasured(run))
    metric = recipe.metric(key) if recipe else None
    if metric is None:
        return RunResult(None, None, None)
    n, last = run.summary.get(metric.count), run.summary.get(key)
    first = run.summary.get(key + FIRST)
    return RunResult(
        metric,
        None if first == last and _evaluated_once(run) else first,
        last,
        metric.interval(run.summary),
        None if n is None else round(n),
    )


def _evaluated_once(run: Run) -> bool:
    """Whether only the evaluation before the first step can have been: its value is then no gain of 0. Not asked where the
    config is not read, as in the table of runs."""
    if "config" in run.get_deferred_fields():
        return False
    section = run.config.get("evaluation")
    every = section.get("every") if isinstance(section, dict) else None
    return isinstance(every, int) and run.step - run.start_step < every


def result_json(run: Run) -> dict[str, Any] | None:
    """`{"metric", "title", "better", "share", "first", "last", "low", "high", "n"}`; None if the recipe is unknown."""
    found = result(run)
    if found.metric is None:
        return None
    metric = found.metric
    low, high = found.interval or (None, None)
    return {
        "metric": metric.key,
        "title": metric.label,
        "better": metric.better,
        "share": metric.share,
        "first": found.first,
        "last": found.last,
        "low": low,
        "high": high,
        "n": found.n,
    }


def _headlines(recipe: Recipe | None) -> tuple[str, ...]:
    return (recipe.headline, *recipe.otherwise) if recipe else ()


def _headline(recipe: Recipe | None, lacking: frozenset[str]) -> str:
    keys = _headlines(recipe)
    return next((key for key in keys if key not in lacking), next(iter(keys), ""))


def metrics(recipe: str, lacking: frozenset[str] = frozenset()) -> dict[str, Any]:
    """`{"headline", "pulse", "stats", "metrics", "histograms", "traces", "groups"}`; empty for an unknown recipe. A run that is `lacking`
    its recipe's headline has another one, and no empty chart of the first."""
    found = recipe_of(recipe)
    return _metrics(found, lacking) if found else _empty()


@cache
def _groups() -> list[dict[str, Any]]:
    return [
        {"id": group.id, "title": group.title, "lede": group.lede, "small": group.small, "order": place}
        for place, group in enumerate(GROUPS)
    ]


def _empty() -> dict[str, Any]:
    return {
        "headline": "",
        "pulse": "",
        "stats": [],
        "metrics": [],
        "histograms": [],
        "traces": [],
        "groups": _groups(),
    }


def _metrics(recipe: Recipe, lacking: frozenset[str]) -> dict[str, Any]:
    headline = _headline(recipe, lacking)
    shown = [
        replace(each, optional=each.key != headline and (each.optional or each.key in lacking)) if lacking else each
        for each in recipe.metrics
    ]
    return {
        "headline": headline,
        "pulse": recipe.pulse.key if recipe.pulse else "",
        "stats": [metric.key for metric in recipe.top if metric.key != recipe.headline],
        "metrics": [_metric(each) for each in shown],
        "histograms": [_metric(each) for each in recipe.histograms],
        "traces": [asdict(each) for each in recipe.traces],
        "groups": _groups(),
    }


def _metric(metric: Metric) -> dict[str, Any]:
    return {
        "key": metric.key,
        "title": metric.title,
        "label": metric.label,
        "help": metric.help,
        "group": metric.group,
        "chart": metric.chart,
        "unit": metric.unit,
        "better": metric.better,
        "band": metric.band,
        "band_times": metric.band_times,
        "ends": list(metric.ends),
        "count": metric.count,
        "share": metric.share,
        "optional": metric.optional,
        "held_out": metric.held_out,
        "over": metric.over,
        "marks": metric.marks,
    }
