"""Reads for the list of runs: filters, and one query for the small curves of a whole page of rows."""

from dataclasses import dataclass
from typing import Any

from django.db import connection
from django.db.models import Q

from webapp.core.numbers import whole
from webapp.core.paging import page

from . import queries, shapes
from .models import Experiment, Run

PAGE = 50
SPARK_POINTS = 40
SPARK = "reward/mean"
STATES: dict[str, list[Run.State]] = {
    "active": [Run.State.QUEUED, Run.State.STARTING, Run.State.RUNNING, Run.State.PAUSED, Run.State.STOPPING],
    **{state.value: [state] for state in Run.State},
}

# Every n-th point of each run, n chosen so that at most `most` remain; the newest is always among them.
SPARKS = """
SELECT run_id, value FROM (
    SELECT run_id, step, value,
        row_number() OVER (PARTITION BY run_id ORDER BY step DESC) - 1 AS back,
        count(*) OVER (PARTITION BY run_id) AS n
    FROM experiments_metricpoint
    WHERE run_id = ANY(%(runs)s) AND key = %(key)s AND value IS NOT NULL
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
    scores: queries.EvalScores

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
    sparks = sparklines([run.id for run in shown.items])
    return [Row(run, sparks.get(run.id, []), queries.eval_scores(run)) for run in shown.items], shown.next


# The order in which active runs are worth looking at.
URGENCY = {Run.State.RUNNING: 0, Run.State.STARTING: 1, Run.State.PAUSED: 2, Run.State.STOPPING: 3}
MOST_ACTIVE = 6


def overview(workspace_id: int, recent: int) -> tuple[list[Row], list[Row]]:
    """At most `MOST_ACTIVE` active runs, running ones first, and the `recent` newest of the others. Three queries."""
    found = queries.runs(workspace_id).order_by("-id")
    active = sorted(found.filter(state__in=STATES["active"])[:50], key=lambda run: URGENCY.get(Run.State(run.state), 4))
    active = active[:MOST_ACTIVE]
    rest = list(found.exclude(state__in=STATES["active"])[:recent])
    sparks = sparklines([run.id for run in (*active, *rest)])
    shown = {run.id: Row(run, sparks.get(run.id, []), queries.eval_scores(run)) for run in (*active, *rest)}
    return [shown[run.id] for run in active], [shown[run.id] for run in rest]


def sparklines(run_ids: list[int], key: str = SPARK, most: int = SPARK_POINTS) -> dict[int, list[float]]:
    """run id -> at most `most` + 1 values of `key` in the order of steps."""
    if not run_ids:
        return {}
    found: dict[int, list[float]] = {}
    with connection.cursor() as cursor:
        cursor.execute(SPARKS, {"runs": run_ids, "key": key, "most": most})
        for run_id, value in cursor.fetchall():
            found.setdefault(run_id, []).append(value)
    return found


def experiments(workspace_id: int) -> list[Experiment]:
    """For the filter: newest first, with `run_count`."""
    return list(queries.experiments(workspace_id).order_by("-id")[:200])
