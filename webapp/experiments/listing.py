"""Reads for the list of runs: filters, and one query for the small curves of a whole page of rows."""

from dataclasses import dataclass
from typing import Any

from django.db import connection
from django.db.models import Q

from webapp.core.numbers import whole
from webapp.core.paging import page

from . import declared, queries, shapes
from .models import ACTIVE, Experiment, Run

PAGE = 50
SPARK_POINTS = 40
STATES: dict[str, list[Run.State]] = {
    "active": list(ACTIVE),
    **{state.value: [state] for state in Run.State},
}

# Every n-th point of each run, n chosen so that at most `most` remain; the newest is always among them.
SPARKS = """
SELECT run_id, value FROM (
    SELECT run_id, step, value,
        row_number() OVER (PARTITION BY run_id ORDER BY step DESC) - 1 AS back,
        count(*) OVER (PARTITION BY run_id) AS n
    FROM unnest(%(runs)s::bigint[], %(keys)s::text[]) AS wanted(run_id, key)
        JOIN experiments_metricpoint USING (run_id, key)
    WHERE value IS NOT NULL
) AS found
WHERE back %% greatest(ceil(n::numeric / %(most)s)::int, 1) = 0
ORDER BY run_id, step
"""


@dataclass(frozen=True)
class Filters:
    """`q` searches names; `state` is a state or `active`. Unknown values filter nothing away silently: they match none."""

    q: str = ""
    state: str = ""
    experiment: str = ""

    @property
    def any(self) -> bool:
        return bool(self.q or self.state or self.experiment)


@dataclass(frozen=True)
class Row:
    run: Run
    spark: list[float]
    pulse: str  # what the small curve shows
    result: declared.RunResult

    @property
    def json(self) -> dict[str, Any]:
        return shapes.run(self.run, config=False)


def rows(workspace_id: int, filters: Filters, cursor: str | None) -> tuple[list[Row], str | None]:
    """One page of rows and the cursor of the next. Three queries, however many rows."""
    found = queries.runs(workspace_id)
    if filters.state:
        found = found.filter(state__in=STATES.get(filters.state, []))
    if filters.experiment:
        wanted = whole(filters.experiment)
        found = found.none() if wanted is None else found.filter(experiment_id=wanted)
    if filters.q:
        found = found.filter(
            Q(name__icontains=filters.q)
            | Q(experiment__name__icontains=filters.q)
            | Q(model__name__icontains=filters.q)
            | Q(dataset_version__dataset__name__icontains=filters.q)
        )
    shown = page(found, cursor, PAGE)
    return _rows(shown.items), shown.next


def _rows(runs: list[Run]) -> list[Row]:
    """One query, however many rows."""
    recipes = {run.id: declared.recipe_of(run.recipe) for run in runs}
    pulses = {run_id: recipe.pulse for run_id, recipe in recipes.items() if recipe and recipe.pulse}
    sparks = sparklines({run_id: metric.key for run_id, metric in pulses.items()})
    return [
        Row(run, sparks.get(run.id, []), pulses[run.id].label if run.id in pulses else "", declared.result(run))
        for run in runs
    ]


# The order in which active runs are worth looking at.
URGENCY = {Run.State.RUNNING: 0, Run.State.STARTING: 1, Run.State.PAUSED: 2, Run.State.STOPPING: 3}
MOST_ACTIVE = 6


def overview(workspace_id: int, recent: int) -> tuple[list[Row], list[Row]]:
    """At most `MOST_ACTIVE` active runs, running ones first, and the `recent` newest of the others. Three queries."""
    found = queries.runs(workspace_id).order_by("-id")
    active = sorted(found.filter(state__in=STATES["active"])[:50], key=lambda run: URGENCY.get(Run.State(run.state), 4))
    active = active[:MOST_ACTIVE]
    rest = list(found.exclude(state__in=STATES["active"])[:recent])
    shown = _rows([*active, *rest])
    return shown[: len(active)], shown[len(active) :]


def sparklines(keys: dict[int, str], most: int = SPARK_POINTS) -> dict[int, list[float]]:
    """run id -> at most `most` + 1 values of its key in `keys`, in the order of steps."""
    if not keys:
        return {}
    found: dict[int, list[float]] = {}
    with connection.cursor() as cursor:
        cursor.execute(SPARKS, {"runs": list(keys), "keys": list(keys.values()), "most": most})
        for run_id, value in cursor.fetchall():
            found.setdefault(run_id, []).append(value)
    return found


def experiments(workspace_id: int) -> list[Experiment]:
    """For the filter: newest first, with `run_count`."""
    return list(queries.experiments(workspace_id).order_by("-id")[:200])
