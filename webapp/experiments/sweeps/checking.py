"""Checks before a sweep is written: every value at its key, every combination of a grid, the metric, the numbers."""

import math
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from trainer.config import RECIPES, ConfigInvalid, FieldProblem, resolve
from trainer.config.together import why_apart
from trainer.contracts.plurals import with_noun
from webapp.accounts.models import Membership
from webapp.core.forms.formtree import Input

from ..launch import checks, named_rows
from ..launch.named_rows import NamedRows
from ..lifecycle.limits import NONE, PLACE, RunLimits
from ..models import Run, Sweep
from . import choosing, keys, space, tpe
from .space import SweepAxis

MOST_AXES, MOST_VALUES, MOST_POINTS = 8, 50, 50
MOST_TRIALS, MOST_SEEDS, MOST_AT_ONCE, MOST_RUNS = 1000, 20, 50, 2000
SCALES = ("linear", "log")


@dataclass(frozen=True)
class Wish:
    """The request, unchecked. `axes`: {"path", "values"} or {"path", "low", "high", "scale", "points"} each."""

    recipe: str
    config: Mapping[str, Any]
    dataset: checks.DatasetChoice
    axes: Sequence[Mapping[str, Any]]
    method: str = "random"
    metric: str = ""  # empty: the recipe's headline
    better: str = ""  # empty: as the recipe says of the metric
    seeds: int = 3
    trials: int = 10  # of a grid it is not asked
    at_once: int = 2
    seed: int = 0
    first_rung: int = 0
    factor: int = 3
    together: bool = False
    name: str = ""
    experiment: str = ""
    source: Run | None = None
    limits: RunLimits = NONE  # of each run


@dataclass
class Checked:
    """`problems` by field of the wish: `axes.0.values`, `seeds`; of the config that all trials share by its path."""

    plan: checks.RunPlan | None = None
    axes: list[SweepAxis] = field(default_factory=list)
    trials: int = 0
    metric: str = ""
    higher: bool = True
    apart: str = ""
    """The reason why its runs cannot train together; empty if they can, or if something else is wrong."""
    named: NamedRows = field(default_factory=dict)
    """The models and judges that are named in the config and in the values of axes."""
    problems: list[FieldProblem] = field(default_factory=list)

    def say(self, path: str, message: str) -> None:
        self.problems.append(FieldProblem(path, message))


def check(membership: Membership, wish: Wish) -> Checked:
    """Checks the request. Writes nothing."""
    found = Checked()
    if wish.recipe not in RECIPES:
        found.say("recipe", f"one of {', '.join(RECIPES)}")
        return found
    try:
        found.plan = checks.plan(membership, wish.recipe, dict(wish.config), wish.dataset, None)
        found.named = named_rows.of_plan(found.plan)
    except ConfigInvalid as error:
        found.problems += error.problems
    _check_metric(found, wish)
    _check_numbers(found, wish)
    for name, why in wish.limits.problems(wish.recipe):
        found.say(f"{PLACE}.{name}", why)
    if found.plan is None:
        return found
    known = keys.sweepable_keys(wish.recipe, found.plan.config)
    if not wish.axes:
        found.say("axes", "choose at least one key that changes")
    if len(wish.axes) > MOST_AXES:
        found.say("axes", f"at most {MOST_AXES} keys")
    for i, raw in enumerate(wish.axes[:MOST_AXES]):
        if axis := _axis(found, f"axes.{i}", raw, known, wish.method):
            found.axes.append(axis)
    if len(found.axes) == len(wish.axes) and not _try_values(membership, found, wish):
        _check_first_rung(found, wish)
        _check_size(found, wish)
        found.apart = _apart(found, wish)
        if wish.together and found.apart:
            found.say("together", found.apart)
    return found


def _apart(found: Checked, wish: Wish) -> str:
    """The reason why the runs cannot train in one process; empty if they can."""
    assert found.plan is not None  # noqa: S101
    config = found.plan.config
    tried = [{axis.path: value} for axis in found.axes for value in axis.tried()]
    return why_apart(wish.recipe, [resolve(wish.recipe, space.with_values(config, values)) for values in [{}, *tried]])


def _check_metric(found: Checked, wish: Wish) -> None:
    recipe = RECIPES[wish.recipe]
    found.metric = wish.metric or recipe.headline
    metric = recipe.metric(found.metric)
    if metric is None or metric.is_pattern and "*" in found.metric:
        found.say("metric", f"runs of {recipe.title} have no metric {found.metric}")
        return
    better = wish.better or metric.better
    if better not in ("higher", "lower"):
        found.say("better", f"say whether higher or lower values of {found.metric} are better")
    found.higher = better == "higher"


def _check_numbers(found: Checked, wish: Wish) -> None:
    bounds = {"seeds": MOST_SEEDS, "trials": MOST_TRIALS, "at_once": MOST_AT_ONCE}
    for name, most in bounds.items():
        if (name != "trials" or wish.method != "grid") and not 1 <= getattr(wish, name) <= most:
            found.say(name, f"1 to {most:,}")
    if wish.method not in choosing.METHODS:
        found.say("method", f"must be one of {', '.join(choosing.offered())}")
    elif wish.method not in choosing.offered():
        found.say("method", tpe.MISSING)
    if not 0 <= wish.seed < 2**31:
        found.say("seed", "0 to 2,147,483,647")
    if wish.first_rung < 0:
        found.say("first_rung", "a step before the last; 0 for none")
    if wish.first_rung and not 2 <= wish.factor <= 10:
        found.say("factor", "2 to 10")


def _check_first_rung(found: Checked, wish: Wish) -> None:
    """The shortest trial must be compared too, also if the axes replace the steps of the config."""
    assert found.plan is not None  # noqa: S101
    steps = choosing.least_steps(found.axes, found.plan.steps)
    if wish.first_rung >= steps > 0:
        shortest = " of the shortest trial" if any(axis.path == "steps" for axis in found.axes) else ""
        found.say("first_rung", f"a step before the last{shortest}, {steps:,}; 0 for none")


def _axis(found: Checked, at: str, raw: Mapping[str, Any], known: Mapping[str, Input], method: str) -> SweepAxis | None:
    path, before = str(raw.get("path") or ""), len(found.problems)
    key = known.get(path)
    if key is None:
        found.say(f"{at}.path", _why_no_key(path))
    elif any(axis.path == path for axis in found.axes):
        found.say(f"{at}.path", "this key is there already")
    elif raw.get("low") is None and raw.get("high") is None:
        values = list(raw.get("values") or ())
        if not 1 <= len(values) <= MOST_VALUES:
            found.say(f"{at}.values", f"1 to {MOST_VALUES} values")
        elif len({space.digest({"": value}) for value in values}) < len(values):
            found.say(f"{at}.values", "a value is there twice")
        return SweepAxis(path, tuple(values)) if len(found.problems) == before else None
    else:
        return _range(found, at, raw, key, method)
    return None


def _why_no_key(path: str) -> str:
    if path == "seed":
        return "seeds are not a key of a sweep: set the number of seeds instead"
    return f"this config has no single value at {path}" if path else "choose a key"


def _range(found: Checked, at: str, raw: Mapping[str, Any], key: Input, method: str) -> SweepAxis | None:
    low, high, scale, points = (raw.get(name) for name in ("low", "high", "scale", "points"))
    before = len(found.problems)
    if key.kind not in ("int", "float"):
        found.say(f"{at}.low", f"{key.path} is not a number: list its values")
        return None
    if not (isinstance(low, (int, float)) and isinstance(high, (int, float)) and math.isfinite(low + high)):
        found.say(f"{at}.low", "a range has two numbers for its ends")
        return None
    if scale not in SCALES:
        found.say(f"{at}.scale", "linear or log")
    if low >= high:
        found.say(f"{at}.high", "more than the lower end")
    elif scale == "log" and low <= 0:
        found.say(f"{at}.low", "above 0, where the scale is log")
    elif key.kind == "int" and math.ceil(low) > math.floor(high):
        found.say(f"{at}.high", "no whole number lies between the ends")
    if points is not None and not (isinstance(points, int) and 2 <= points <= MOST_POINTS):
        found.say(f"{at}.points", f"2 to {MOST_POINTS}")
    elif points is None and method == "grid":
        found.say(f"{at}.points", "how many values of the range the grid has")
    if len(found.problems) > before:
        return None
    assert scale in ("linear", "log")  # noqa: S101
    return SweepAxis(key.path, (), float(low), float(high), scale, points, key.kind == "int")


def _try_values(membership: Membership, found: Checked, wish: Wish) -> bool:
    """Whether the config refuses a value of an axis, with the other keys unchanged. Each problem is at its axis."""
    plan = found.plan
    assert plan is not None  # noqa: S101
    before = len(found.problems)
    for i, axis in enumerate(found.axes):
        for value in axis.tried():
            try:
                tried = _planned(membership, wish.recipe, plan.config, wish.dataset, {axis.path: value})
                found.named = named_rows.joined(found.named, named_rows.of_plan(tried))
            except ConfigInvalid as error:
                where = f"axes.{i}.{'low' if axis.is_range else 'values'}"
                found.say(where, f"{keys.value_text(value)}: {_all_told(error, {axis.path: value})}")
    return len(found.problems) > before


def refused(
    membership: Membership,
    recipe: str,
    config: Mapping[str, Any],
    dataset: checks.DatasetChoice,
    values: Mapping[str, space.Value],
) -> str:
    """The reason why no run can have the config with these values; empty if it can."""
    try:
        _planned(membership, recipe, config, dataset, values)
    except ConfigInvalid as error:
        return _all_told(error, values)
    return ""


def _planned(
    membership: Membership,
    recipe: str,
    config: Mapping[str, Any],
    dataset: checks.DatasetChoice,
    values: Mapping[str, space.Value],
) -> checks.RunPlan:
    return checks.plan(membership, recipe, space.with_values(config, values), dataset, None)


def _all_told(error: ConfigInvalid, values: Mapping[str, space.Value]) -> str:
    return "; ".join(_told(problem, values) for problem in error.problems)


def _told(problem: FieldProblem, values: Mapping[str, space.Value]) -> str:
    mine = len(values) == 1 and problem.path in values
    return problem.message if mine or not problem.path else f"{problem.path}: {problem.message}"


def _check_size(found: Checked, wish: Wish) -> None:
    total = space.size(found.axes, grid=wish.method == "grid")
    found.trials = wish.trials
    if wish.method == "grid":
        found.trials = total or 0
        if total is None or total > MOST_TRIALS:
            found.say(
                "axes", f"the grid has {with_noun(total or 0, 'combinations')}; at most {MOST_TRIALS:,} are tried"
            )
            return
        for why in _of_grid(found, wish.recipe):
            found.say("axes", why)
    elif total is not None:
        found.trials = min(wish.trials, total)
    if found.trials * wish.seeds > MOST_RUNS:
        runs = f"{found.trials:,} trials x {wish.seeds} seeds"
        found.say("seeds", f"{runs} are more than {MOST_RUNS:,} runs")


def _of_grid(found: Checked, recipe: str) -> Iterator[str]:
    """The first combination that the config refuses although it takes each of the values alone."""
    assert found.plan is not None  # noqa: S101
    for values in space.grid(found.axes):
        try:
            resolve(recipe, space.with_values(found.plan.config, values))
        except ConfigInvalid as error:
            words = ", ".join(f"{path} = {keys.value_text(value)}" for path, value in values.items())
            yield f"{words}: {'; '.join(_told(problem, values) for problem in error.problems)}"
            return


def sweep_fields(found: Checked, wish: Wish) -> dict[str, Any]:
    """The columns of a sweep without problems, except who asks and where its runs go."""
    assert found.plan is not None  # noqa: S101
    return {
        "recipe": wish.recipe,
        "config": found.plan.config,
        "named_rows": found.named,
        "dataset": found.plan.version.dataset_id,
        "version": found.plan.version.number,
        "axes": [axis.json() for axis in found.axes],
        "method": Sweep.Chooses(wish.method),
        "metric": found.metric,
        "higher": found.higher,
        "seeds": wish.seeds,
        "wanted": found.trials,
        "at_once": wish.at_once,
        "seed": wish.seed,
        "first_rung": wish.first_rung,
        "factor": wish.factor,
        "together": wish.together,
        "source": wish.source,
        "limits": wish.limits.json(),
    }
