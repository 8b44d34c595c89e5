"""Whether the results of runs can be compared: the same measure, on the same held-out data, taken in the same way."""

from collections import Counter
from collections.abc import Mapping, Sequence
from fnmatch import fnmatchcase as fnmatch
from functools import cache

from trainer.config.recipe import Recipe
from webapp.core.forms.formtree import as_text, flatten

from .. import recipe_metrics
from ..models import Run

SPARED = ("evaluation.every",)
"""Settings that do not change the measure, such as how often it is taken."""
EXAMPLES = "evaluation.max_examples"
Way = dict[str, str]


def unlike(runs: Sequence[Run]) -> list[str]:
    """For each run, how its result was measured otherwise than that of most runs (of the first, if as many differ); empty if it compares.
    Runs without a result compare with any."""
    ways = [_way(run) for run in runs]
    common = Counter(tuple(sorted(way.items())) for way in ways if way).most_common(1)
    if not common:
        return ["" for _ in runs]
    most = dict(common[0][0])
    reference = next(run for run, way in zip(runs, ways, strict=True) if way == most)
    return [_why(way, most, reference) if way else "" for way in ways]


def _way(run: Run) -> Way:
    """The conditions of the result, in words by their subject; empty without a result."""
    recipe, result = recipe_metrics.recipe_of(run.recipe), recipe_metrics.result(run)
    if recipe is None or result.metric is None or result.last is None:
        return {}
    return {"measure": result.metric.label, "data": str(run.data), **_settings(recipe, run)}


def _settings(recipe: Recipe, run: Run) -> Way:
    patterns = tuple(recipe.measured_by)
    part = {name: value for name, value in run.config.items() if _may_measure(name, patterns)}
    found = {path: as_text(value) for path, value in flatten(part).items() if _measures(path, patterns)}
    held_out = run.data.counts.get("heldout")
    if EXAMPLES in found and held_out is not None:
        found[EXAMPLES] = str(min(int(found[EXAMPLES]), held_out))
    return found


@cache
def _may_measure(name: str, measured_by: tuple[str, ...]) -> bool:
    """Whether a path in this section of the config can be meant. Most sections cannot, and most of a config is in them."""
    return any(fnmatch(name.partition(".")[0], each.partition(".")[0]) for each in measured_by)


@cache
def _measures(path: str, measured_by: tuple[str, ...]) -> bool:
    """Asked for every path of a thousand configs, which have the same paths."""
    return path not in SPARED and any(fnmatch(path, each) for each in measured_by)


def _why(way: Mapping[str, str], most: Mapping[str, str], reference: Run) -> str:
    names = dict.fromkeys(("measure", "data", *sorted(most), *sorted(way)))
    apart = [name for name in names if way.get(name) != most.get(name)]
    if not apart:
        return ""
    name, more = apart[0], f", and {len(apart) - 1} more" if len(apart) > 1 else ""
    return f"{name} {way.get(name, 'is not set')}, where {reference} has {most.get(name, 'none')}{more}"
