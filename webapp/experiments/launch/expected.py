"""Estimates the time of a run here, and the tokens of its judges, from earlier runs of its recipe. An unknown value says why, and is never
0.

The number of queries is the same for any number of runs and judges.
"""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from decimal import Decimal
from itertools import groupby
from math import ceil, log
from typing import Any

from trainer.config import RECIPES, ConfigInvalid, RecipeConfig, resolve, upgrade_stored
from trainer.contracts.plurals import with_noun
from webapp.inference.models import Endpoint, RegisteredModel
from webapp.judging import queries as judging
from webapp.judging.models import JudgeVersion

from ..lifecycle.estimates import about
from ..metrics import points
from ..models import Run, RunJudge
from . import devices

STEP, EVALUATION = "perf/step_s", "perf/evaluation_s"
MOST_RUNS = 20  # the newest earlier runs that are compared with the new one
MOST_OF_JUDGE = 5  # the newest runs of a judge that its use is taken from
MOST_ROWS = 200
PROCESSOR = ("the processor", "processors")


@dataclass(frozen=True)
class ExpectedTime:
    """`words` are empty if the time is not known; then `how` says why. Else `how` says how `source` differs from the new run."""

    words: str = ""
    how: str = ""
    source: Run | None = None
    seconds: float | None = None


@dataclass(frozen=True)
class ExpectedUse:
    """The tokens of all judges together; `words` and `how` as those of a time. `sources` is how many runs they come from."""

    words: str = ""
    how: str = ""
    source: Run | None = None
    tokens: float | None = None
    money: float | None = None


def time(workspace_id: int, recipe: str, config: RecipeConfig, model: RegisteredModel | None) -> ExpectedTime:
    """The time of all steps and evaluations, as the nearest earlier run took for them."""
    if model is None:
        return ExpectedTime(how="choose a model first")
    rows = Run.objects.with_names().filter(
        experiment__workspace_id=workspace_id, recipe=recipe, model=model, first_metric_at__isnull=False, carried_by=""
    )
    rows = rows.exclude(swept__trial__sweep__together=True).order_by("-id")[:MOST_RUNS]
    found = [
        (row, before) for row in rows if row.step > row.start_step and (before := _config(row)) and _same_kind(row)
    ]
    if not found:
        return ExpectedTime(how="no run of this recipe has trained this model here yet")
    nearest, before = min(found, key=lambda each: _distance(config, *each))
    means = points.averages(nearest.pk, (STEP, EVALUATION))
    if STEP not in means:
        return ExpectedTime(how="earlier runs of this recipe and model have reported no times")
    scale = _scale(config, before)
    seconds = config.steps * means[STEP] * scale
    notes = [f"a step does {scale:.2g} × as much"] if abs(scale - 1) > 0.01 else []
    if wanted := _evaluated(config):
        if EVALUATION in means and before.evaluation.max_examples:
            seconds += wanted * means[EVALUATION] / before.evaluation.max_examples
        else:
            notes.append("without evaluations, whose time is not known")
    notes += _differences(config, nearest, before)
    return ExpectedTime(about(seconds), "; ".join(notes), nearest, seconds)


def judges(workspace_id: int, recipe: str, config: RecipeConfig) -> ExpectedUse | None:
    """The usage of the judges of the config; None if it names none."""
    names = {slot.name for slot in RECIPES[recipe].filled(config) if slot.kind == "judge"}
    if not names:
        return None
    versions = judging.versions_named(workspace_id, names)
    asked = {name: row for name, row in versions.items() if row.endpoint.kind == Endpoint.Kind.CHAT}
    if versions and not asked:
        return ExpectedUse(how="they answer in the process of the run, which costs nothing but time")
    rows = RunJudge.objects.filter(
        run__experiment__workspace_id=workspace_id, run__recipe=recipe, version__in=asked.values(), calls__gt=0
    )
    rows = rows.select_related("run").order_by("-run_id")[:MOST_ROWS]
    used = {
        version: list(each) for version, each in groupby(sorted(rows, key=_by_version), key=lambda row: row.version_id)
    }
    found = {name: _use(version, used.get(version.pk, []), config) for name, version in asked.items()}
    known = {name: use for name, use in found.items() if use is not None}
    if not known:
        return ExpectedUse(how=f"no earlier run of this recipe has asked {' or '.join(sorted(names))}")
    tokens, calls = sum(use.tokens for use in known.values()), sum(use.calls for use in known.values())
    prices = [use.money for use in known.values()]
    money = None if None in prices else sum(price for price in prices if price is not None)
    sources = {run.pk: run for use in known.values() for run in use.runs}
    newest = sources.pop(max(sources))
    notes = [f"{_size(calls)} calls"]
    notes.append(
        "cost not known: no prices" if money is None else f"cost {_size(money)} by the prices of their endpoints"
    )
    if unknown := sorted(names - set(known)):
        notes.append(f"without {', '.join(unknown)}: not known")
    if sources:
        notes.append(f"and {with_noun(len(sources), 'other runs')}")
    return ExpectedUse(f"{_size(tokens)} tokens", "; ".join(notes), newest, tokens, money)


@dataclass(frozen=True)
class _Use:
    calls: float
    tokens: float
    money: float | None
    runs: list[Run]


def _use(version: JudgeVersion, rows: list[RunJudge], config: RecipeConfig) -> _Use | None:
    """The use of one judge at the rate of its newest runs: calls for each response, tokens for each call."""
    work, counting = 0.0, []
    for row in rows[:MOST_OF_JUDGE]:
        before, steps = _config(row.run), row.run.step - row.run.start_step
        if before is not None and steps > 0 and (items := before.step_size().items or 1):
            work += items * steps
            counting.append(row)
    if not counting:
        return None
    calls, tokens = sum(row.calls for row in counting), sum(row.tokens for row in counting)
    share = config.steps * (config.step_size().items or 1) / work
    return _Use(
        calls * share, tokens * share, _money(version.endpoint, counting, tokens * share), [row.run for row in counting]
    )


def _money(endpoint: Endpoint, rows: list[RunJudge], tokens: float) -> float | None:
    """The cost, by the price of a token in the runs that counted money; None if the endpoint has no prices, or none of the runs counted
    any."""
    if endpoint.price_prompt is None or endpoint.price_completion is None:
        return None
    if not endpoint.price_prompt and not endpoint.price_completion:
        return 0.0
    paid = [row for row in rows if row.money > 0 and row.tokens > 0]
    if not paid:
        return None
    return tokens * float(sum((row.money for row in paid), Decimal()) / sum(row.tokens for row in paid))


def _by_version(row: RunJudge) -> tuple[int, int]:
    return row.version_id, -row.run_id


def _config(run: Run) -> RecipeConfig | None:
    """The config of an earlier run; None if it cannot be read any more."""
    try:
        return resolve(run.recipe, upgrade_stored(run.recipe, run.config))
    except ConfigInvalid:
        return None


def _scale(config: RecipeConfig, before: RecipeConfig) -> float:
    """The work of a step, as a multiple of the work of a step of `before`; 1 if the steps cannot be compared."""
    mine, theirs = config.step_size(), before.step_size()
    items = mine.items / theirs.items if mine.items and theirs.items else 1.0
    return items * (mine.tokens / theirs.tokens if mine.tokens and theirs.tokens else 1.0)


def _evaluated(config: RecipeConfig) -> int:
    """Held-out examples in all evaluations together: before the first step, in between, and after the last."""
    every, steps = config.evaluation.every, config.steps
    return config.evaluation.max_examples * (1 + (ceil(steps / every) if every else 1))


def _distance(config: RecipeConfig, run: Run, before: RecipeConfig) -> tuple[int, float, int]:
    return len(list(_differences(config, run, before))), abs(log(_scale(config, before))), -run.pk


def _differences(config: RecipeConfig, run: Run, before: RecipeConfig) -> Iterator[str]:
    """Other settings that decide the time of a step, if they differ from those of the earlier run."""
    mine, theirs = config.model_dump(mode="json"), before.model_dump(mode="json")
    if _kind_of_sampler(mine) != _kind_of_sampler(theirs):
        yield "there with another sampler"
    if (config.model.lora is None) != (before.model.lora is None):
        yield f"there {'all weights were' if before.model.lora is None else 'only adapters were'} trained"
    if config.model.dtype != before.model.dtype:
        yield f"there in {before.model.dtype}"
    here = devices.expected().value
    if (
        run.learner_device
        and not run.learner_device.startswith(PROCESSOR)
        and run.learner_device not in (here, "a GPU")
    ):
        yield f"there on {run.learner_device}"


def _kind_of_sampler(config: Mapping[str, Any]) -> Any:
    return (config.get("sampler") or {}).get("kind")


def _same_kind(run: Run) -> bool:
    """Whether the run trained on the kind of device that a new one would get: processors or cards. True if either is not known."""
    here = devices.expected().value
    if here == "not known yet" or not run.learner_device:
        return True
    return run.learner_device.startswith(PROCESSOR) == here.startswith(PROCESSOR)


def _size(value: float) -> str:
    """About: 12,000, 3.4 M, 0.021, with two digits that count."""
    rounded = float(f"{value:.2g}")
    for size, letter in ((1e9, "G"), (1e6, "M")):
        if rounded >= size:
            return f"about {rounded / size:.2g} {letter}"
    return f"about {rounded:,.0f}" if rounded >= 10 else f"about {rounded:g}"
