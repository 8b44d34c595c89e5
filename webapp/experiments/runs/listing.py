"""Rows of runs as lists show them, with one query for the small curves of all, and the runs on the home page."""

import heapq
from dataclasses import dataclass
from itertools import chain
from typing import Any

from django.contrib.postgres.expressions import ArraySubquery
from django.db.models import OuterRef

from .. import queries, recipe_metrics, serializers
from ..metrics import points
from ..models import ACTIVE, OVER, Experiment, Run

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
    """The active runs, at most `MOST_ACTIVE` and running ones first, and the `recent` newest of those that are over. Four queries."""
    found = queries.runs(workspace_id).order_by("-id")
    active = sorted(found.filter(state__in=ACTIVE)[:50], key=lambda run: ORDER.index(run.state))
    active = active[:MOST_ACTIVE]
    rest = list(found.filter(pk__in=_newest_over(workspace_id, recent)))
    shown = rows_of([*active, *rest])
    return shown[: len(active)], shown[len(active) :]


def _newest_over(workspace_id: int, most: int) -> list[int]:
    """The newest runs of the workspace that are over, from the newest ones of each experiment, which an index has in order.

    An order by the id alone would let the database walk the runs of the whole installation, the newest first, until it has enough: all of
    them for a workspace that has none. Only that index has the order of a range of experiments, also if the range is a single one.
    """
    one = {"experiment__gte": OuterRef("pk"), "experiment__lte": OuterRef("pk")}
    own = Run.objects.filter(**one, state__in=OVER).present().order_by("-experiment_id", "-id")
    newest = Experiment.objects.filter(workspace_id=workspace_id).annotate(
        newest=ArraySubquery(own.values("pk")[:most])
    )
    return heapq.nlargest(most, chain.from_iterable(newest.values_list("newest", flat=True)))


def sparklines(keys: dict[int, str], most: int = SPARK_POINTS) -> dict[int, list[float]]:
    """run id -> at most `most` + 1 values of its key in `keys`, in the order of steps."""
    return points.sparks(keys, most)
