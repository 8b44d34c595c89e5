"""Compares up to a thousand runs: the differences of their configs, their last values, and curves, folded by seed."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any

import numpy as np
from django.db import connection

from trainer.metrics.claims.verdict import mean_over_seeds
from trainer.metrics.estimate import Estimate

from .. import recipe_metrics
from ..metrics import ranges
from ..models import Run
from ..runs import comparability
from ..table_facts import SEED
from .seeds import by_seed, one_each

MOST_RUNS = 1000
MOST_KEYS = 50  # metrics in one answer
POINTS = 50_000  # of all curves of one answer
MOST_POINTS = 400  # of one curve

# paths for which the runs have different values, or some run has none
DIFFERING = """
SELECT known.id, known.path FROM experiments_runvalue AS value
JOIN experiments_runcolumn AS known ON known.id = value.column_id
WHERE value.run_id = ANY(%(runs)s) AND known.source = 'config'
GROUP BY known.id, known.path
HAVING count(*) < %(n)s OR min(number) IS DISTINCT FROM max(number) OR min(text) IS DISTINCT FROM max(text)
    OR (count(number) > 0 AND count(text) > 0)
ORDER BY known.path
"""
KEYS = """
SELECT known.id, known.path FROM experiments_runcolumn AS known
WHERE known.source = 'metric' AND known.workspace_id = %(workspace)s
    AND EXISTS (SELECT FROM experiments_runvalue WHERE column_id = known.id AND run_id = ANY(%(runs)s))
ORDER BY known.path
"""
VALUES = """
SELECT column_id, run_id, number, text FROM experiments_runvalue
WHERE run_id = ANY(%(runs)s) AND column_id = ANY(%(columns)s)
"""


@dataclass(frozen=True)
class Family:
    """Runs that differ only by their seed, as indices of the compared runs."""

    label: str
    places: list[int]


@dataclass(frozen=True)
class RunComparison:
    """Everything is by the indices of `runs`. For a config path, `values` are the different values, and `held` says which of them each run
    has."""

    runs: list[Run]
    seeds: list[float | None]
    families: list[Family]
    config: list[dict[str, Any]]
    keys: list[str]  # all metrics that any of the runs has
    metrics: dict[str, list[float | None]]
    unlike: dict[int, str] = field(default_factory=dict)

    @cached_property
    def recipes(self) -> list[str]:
        return list(dict.fromkeys(run.recipe for run in self.runs))


def compare_runs(
    workspace_id: int,
    runs: Sequence[Run],
    keys: Sequence[str] | None = None,
    shown: Callable[[Any], Any] = lambda value: value,
) -> RunComparison:
    """`runs` are the workspace's, with their names. `keys`: at most `MOST_KEYS`; None: what recipes show on top, then the others. `shown`
    converts a value of a config to its public form. Six queries, for any number of runs."""
    ids = [run.pk for run in runs]
    place = {run_id: i for i, run_id in enumerate(ids)}
    known = dict(_rows(KEYS, workspace=workspace_id, runs=ids))
    named = {path: pk for pk, path in known.items()}
    wanted = [key for key in (keys if keys is not None else _first(runs, list(named))) if key in named][:MOST_KEYS]
    differing = dict(_rows(DIFFERING, runs=ids, n=len(ids)))
    asked = [*differing, *(named[key] for key in wanted)]
    held: dict[int, list[Any]] = {pk: [None] * len(ids) for pk in asked}
    for column, run_id, number, text in _rows(VALUES, runs=ids, columns=asked):
        held[column][place[run_id]] = number if text is None else text
    seeds = _seeds(runs)
    config = [_differing(path, held[pk], shown) for pk, path in differing.items()]
    return RunComparison(
        runs=list(runs),
        seeds=seeds,
        families=_families(runs, config),
        config=config,
        keys=list(named),
        metrics={key: held[named[key]] for key in wanted},
        unlike={run.pk: why for run, why in zip(runs, comparability.unlike(list(runs)), strict=True) if why},
    )


def _rows(statement: str, **given: Any) -> list[tuple[Any, ...]]:
    with connection.cursor() as cursor:
        cursor.execute(statement, given)
        found: list[tuple[Any, ...]] = cursor.fetchall()
    return found


def _first(runs: Sequence[Run], keys: list[str]) -> list[str]:
    """The keys with headlines and stats of the recipes first."""
    recipes = [recipe_metrics.recipe_of(name) for name in dict.fromkeys(run.recipe for run in runs)]
    top = [metric.key for recipe in recipes if recipe for metric in recipe.top]
    return list(dict.fromkeys([*(key for key in top if key in keys), *keys]))


def _seeds(runs: Sequence[Run]) -> list[float | None]:
    held = (run.config.get(SEED) for run in runs)
    return [float(seed) if isinstance(seed, (int, float)) else None for seed in held]


def _differing(path: str, values: list[Any], shown: Callable[[Any], Any]) -> dict[str, Any]:
    different = list(dict.fromkeys(values))
    held = [different.index(value) for value in values]
    return {"path": path, "values": [shown(value) for value in different], "held": held}


def _families(runs: Sequence[Run], config: list[dict[str, Any]]) -> list[Family]:
    """The families, named by their differences, or by the name of their run if a family has only one."""
    found: dict[tuple[int, str], list[int]] = {}
    for i, run in enumerate(runs):
        found.setdefault((run.experiment_id, run.family or str(run.pk)), []).append(i)
    telling = [row for row in config if row["path"] != SEED and len(row["values"]) > 1][:4]
    return [Family(_label(runs, places, telling), places) for places in found.values()]


def _label(runs: Sequence[Run], places: list[int], telling: list[dict[str, Any]]) -> str:
    run = runs[places[0]]
    if len(places) == 1 or not telling:
        return str(run) if len(places) == 1 else run.name_over_seeds
    held = [(row["path"].rpartition(".")[2], row["values"][row["held"][places[0]]]) for row in telling]
    return ", ".join(f"{name} {columns_text(value)}" for name, value in held)


def columns_text(value: Any) -> str:
    return "–" if value is None else f"{value:g}" if isinstance(value, float) else str(value)[:40]


def over_seeds(comparison: RunComparison, key: str, family: Family) -> Estimate:
    """Mean and interval of a metric's last values."""
    return mean_over_seeds(one_each(*_seeds_and_values(comparison, key, family)))


def against(comparison: RunComparison, key: str, family: Family, baseline: Family) -> Estimate:
    """Mean difference to the baseline over the seeds that both have, paired, with its t-interval. A seed that only one of the two has is
    `missing`."""
    first, second = (by_seed(*_seeds_and_values(comparison, key, each)) for each in (baseline, family))
    return mean_over_seeds(
        [
            None if (a := first.get(seed)) is None or (b := second.get(seed)) is None else b - a
            for seed in sorted(first.keys() | second.keys())
        ]
    )


def _seeds_and_values(
    comparison: RunComparison, key: str, family: Family
) -> tuple[list[float | None], list[float | None]]:
    """The seeds and the last values of the runs of the family."""
    return [comparison.seeds[i] for i in family.places], [comparison.metrics[key][i] for i in family.places]


@dataclass(frozen=True)
class Curves:
    """One metric of many runs on one grid of steps. `values` and `times` (seconds since the run's first point) have None if a run has no
    point in a range of steps. `exact`: every range is a single step, so that each value is a point as it was sent."""

    steps: list[float]
    held: dict[int, tuple[list[float | None], list[float | None]]]
    points: int
    exact: bool


def curves(runs: Sequence[Run], key: str, points: int = MOST_POINTS) -> Curves:
    """Curves with at most `points` for a run and `POINTS` in all. Each value is the mean of a range of steps, which is longer if there are
    more runs."""
    most = max(2, min(points, MOST_POINTS, POINTS // max(len(runs), 1)))
    found = ranges.means([run.pk for run in runs], key, most)
    places, at = np.unique(found.place, return_inverse=True)
    exact = found.span <= most
    steps = found.low + places if exact else found.low + (places + 0.5) * found.span / most
    values, times = (np.full((len(runs), len(places)), None, object) for _ in range(2))
    values[found.run, at], times[found.run, at] = found.value, found.at
    which = sorted(set(found.run.tolist()), key=lambda i: runs[i].pk)
    held = {runs[i].pk: (values[i].tolist(), times[i].tolist()) for i in which}
    return Curves(steps.astype(float).tolist(), held, most, exact)
