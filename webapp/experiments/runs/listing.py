"""Rows of runs as lists show them, with one query for the small curves of all, and the runs on the home page."""

from dataclasses import dataclass
from typing import Any

from .. import queries, recipe_metrics, serializers
from ..metrics import points
from ..models import ACTIVE, Run

SPARK_POINTS = 40


@dataclass(frozen=True)
class ListedRun:
    run: Run
    spark: list[float]
    pulse: str  # what the small curve shows
    result: recipe_metrics.RunResult

    @property
    def json(self) -> dict[str, Any]:
        return serializers.run(self.run, config=False)


def rows_of(runs: list[Run], curves: bool = True) -> list[ListedRun]:
    """The rows, with one query for the curves of any number of them."""
    recipes = {run.id: recipe_metrics.recipe_of(run.recipe) for run in runs}
    pulses = {run_id: recipe.pulse for run_id, recipe in recipes.items() if recipe and recipe.pulse}
    sparks = sparklines({run_id: metric.key for run_id, metric in pulses.items()}) if curves else {}
    return [
        ListedRun(
            run, sparks.get(run.id, []), pulses[run.id].label if run.id in pulses else "", recipe_metrics.result(run)
        )
        for run in runs
    ]


# The order in which active runs are worth looking at.
ORDER = ("running", "starting", "blocked", "pausing", "stopping", "queued", "paused")
MOST_ACTIVE = 6


def overview(workspace_id: int, recent: int) -> tuple[list[ListedRun], list[ListedRun]]:
    """The active runs, at most `MOST_ACTIVE` and running ones first, and the `recent` newest of the others. Three queries."""
    found = queries.runs(workspace_id).order_by("-id")
    active = sorted(found.filter(state__in=ACTIVE)[:50], key=lambda run: ORDER.index(run.state))
    active = active[:MOST_ACTIVE]
    rest = list(found.exclude(state__in=(*ACTIVE, Run.State.DRAFT))[:recent])
    shown = rows_of([*active, *rest])
    return shown[: len(active)], shown[len(active) :]


def sparklines(keys: dict[int, str], most: int = SPARK_POINTS) -> dict[int, list[float]]:
    """run id -> at most `most` + 1 values of its key in `keys`, in the order of steps."""
    return points.sparks(keys, most)
