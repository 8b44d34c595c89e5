"""What the work of a workspace has cost: hours of processes, tokens and money of judges, and minutes of people.

Each source is one SELECT with the same columns, one row for each piece of work. What was not measured is null there, never 0; a sum leaves it
out, and is null itself if nothing of it was measured. A run or job belongs, as a whole, to the month (UTC) in which it ended, and to the
present month while it is under way.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import date
from typing import Any

from django.db import connection

from webapp.accounts.models import Membership, User
from webapp.annotation.access import may_name
from webapp.annotation.models import Project
from webapp.experiments.models import Experiment, Run
from webapp.weights.models import WeightsJob

MOST = 200  # rows of a page
MEASURES = ("hours", "gpu_hours", "judge_tokens", "money", "minutes")
# of a run: all its attempts, without the time in the line, as the time limit counts it. Its process names the device that trains.
RUNS = """
SELECT coalesce(run.ended_at, %(now)s) AS at, 'run' AS kind, run.id AS work, 'experiment' AS place, run.experiment_id AS place_id,
    run.created_by_id AS person, span.hours,
    CASE WHEN run.learner_device LIKE 'the processor%%' THEN 0
        WHEN run.learner_device = '' OR run.learner_device LIKE '%% of the Ray cluster' THEN NULL ELSE span.hours END AS gpu_hours,
    NULL::bigint AS judge_tokens, NULL::numeric AS money, NULL::float8 AS minutes
FROM experiments_run AS run JOIN experiments_experiment AS experiment ON experiment.id = run.experiment_id CROSS JOIN LATERAL (
    SELECT CASE WHEN run.recipe <> 'logged' THEN extract(epoch FROM
        run.under_way + greatest(coalesce(%(now)s - run.begun_at, interval '0'), interval '0'))::float8 / 3600 END AS hours
) AS span
WHERE experiment.workspace_id = %(workspace)s AND (run.started_at IS NOT NULL OR run.begun_at IS NOT NULL)
"""
# a budget without a price counts no money, which is not the same as no cost
JUDGES = """
SELECT coalesce(run.ended_at, %(now)s), 'run', run.id, 'experiment', run.experiment_id, run.created_by_id, NULL, NULL, asked.tokens,
    CASE WHEN endpoint.price_prompt IS NULL OR endpoint.price_completion IS NULL THEN nullif(asked.money, 0) ELSE asked.money END, NULL
FROM experiments_runjudge AS asked JOIN experiments_run AS run ON run.id = asked.run_id
JOIN experiments_experiment AS experiment ON experiment.id = run.experiment_id
JOIN judging_judgeversion AS version ON version.id = asked.version_id JOIN inference_endpoint AS endpoint ON endpoint.id = version.endpoint_id
WHERE experiment.workspace_id = %(workspace)s AND asked.calls > 0
"""
# a job that was tried again has only the beginning of its first attempt and the end of its last
JOBS = """
SELECT coalesce(job.ended_at, %(now)s), 'job', job.id, 'jobs', 0, job.created_by_id, span.hours,
    CASE WHEN coalesce((job.params -> 'resources' ->> 'gpus')::float8, 0) = 0 THEN 0 ELSE span.hours END, NULL, NULL, NULL
FROM weights_weightsjob AS job CROSS JOIN LATERAL (
    SELECT CASE WHEN job.attempt = 1 THEN extract(epoch FROM coalesce(job.ended_at, %(now)s) - job.started_at)::float8 / 3600 END AS hours
) AS span
WHERE job.workspace_id = %(workspace)s AND job.started_at IS NOT NULL
"""
PEOPLE = """
SELECT coalesce(seat.submitted_at, seat.claimed_at), 'project', seat.project_id, 'project', seat.project_id,
    CASE WHEN %(named)s OR seat.user_id = %(me)s THEN seat.user_id END, NULL, NULL, NULL, NULL, nullif(seat.seconds, 0) / 60
FROM annotation_assignment AS seat JOIN annotation_project AS project ON project.id = seat.project_id
WHERE project.workspace_id = %(workspace)s AND (seat.submitted_at IS NOT NULL OR seat.seconds > 0)
"""
SOURCES = (RUNS, JUDGES, JOBS, PEOPLE)
KEYS: Mapping[str, tuple[str, str]] = {
    "month": ("to_char(at AT TIME ZONE 'UTC', 'YYYY-MM')", "0::bigint"),
    "project": ("place", "place_id"),
    "run": ("kind", "work"),
    "person": ("CASE WHEN person IS NULL THEN 'nobody' ELSE 'person' END", "coalesce(person, 0)"),
}
"""What lines are made of: (kind, id) of each choice."""
SUMS = ", ".join(f"sum({name})" for name in MEASURES)
# a piece of work that has hours has hours of GPUs too, and so on: what of it was not measured is counted
UNKNOWN = """count(*) FILTER (WHERE kind IN ('run', 'job') AND hours IS NULL AND judge_tokens IS NULL),
    count(*) FILTER (WHERE kind IN ('run', 'job') AND gpu_hours IS NULL AND judge_tokens IS NULL), 0,
    count(*) FILTER (WHERE judge_tokens IS NOT NULL AND money IS NULL), count(*) FILTER (WHERE kind = 'project' AND minutes IS NULL)"""


@dataclass(frozen=True)
class MeasuredCost:
    """`value` is None if nothing was measured; `unknown` pieces of work are in no sum."""

    value: float | None
    unknown: int


@dataclass
class CostLine:
    kind: str
    id: int
    amounts: dict[str, MeasuredCost]
    name: str = ""
    url: str = ""


@dataclass(frozen=True)
class CostTable:
    lines: Sequence[CostLine]
    total: CostLine
    more: bool


def table(
    membership: Membership,
    by: str,
    month: date | None,
    sort: str,
    now: Any,
    most: int = MOST,
    *,
    run: int | None = None,
) -> CostTable:
    """What was used in a month, or in all of them, by month, project, run or person: the largest `sort` first. `run` narrows it to one run."""
    kind, key = KEYS[by]
    narrowed = ["at >= %(begin)s AND at < %(end)s"] * (month is not None) + ["kind = 'run' AND work = %(run)s"] * (
        run is not None
    )
    within = f"WHERE {' AND '.join(narrowed)}" if narrowed else ""
    order = "1 DESC" if by == "month" else f"{3 + MEASURES.index(sort)} DESC NULLS LAST, 1, 2"
    sql = f"""
        WITH used AS ({" UNION ALL ".join(SOURCES)})
        SELECT {kind} AS line, {key} AS id, {SUMS}, {UNKNOWN}, grouping({kind}) FROM used {within}
        GROUP BY GROUPING SETS (({kind}, {key}), ()) ORDER BY grouping({kind}) DESC, {order} LIMIT %(most)s
    """  # noqa: S608  built from constants
    asked = {
        "workspace": membership.workspace_id,
        "now": now,
        "named": may_name(membership),
        "me": membership.user_id,
        "most": most + 2,
        "run": run,
    }
    with connection.cursor() as cursor:
        cursor.execute(sql, asked | (bounds(month) if month else {}))
        found = [_line(row) for row in cursor.fetchall()]
    total, lines = found[0], found[1:]
    _name(lines[:most])
    return CostTable(lines[:most], total, len(lines) > most)


def bounds(month: date) -> dict[str, str]:
    following = date(month.year + month.month // 12, month.month % 12 + 1, 1)
    return {"begin": f"{month}T00:00:00+00:00", "end": f"{following}T00:00:00+00:00"}


def _line(row: tuple[Any, ...]) -> CostLine:
    values, unknown = row[2:7], row[7:12]
    amounts = {
        name: MeasuredCost(None if value is None else float(value), missing)
        for name, value, missing in zip(MEASURES, values, unknown, strict=True)
    }
    return CostLine(row[0] or "", row[1] or 0, amounts)


def _name(lines: Sequence[CostLine]) -> None:
    """Names and addresses: one query for each kind of row that there is."""
    models: dict[str, tuple[Any, str]] = {
        "run": (Run.objects.only("name", "number"), "/runs/{}"),
        "job": (WeightsJob.objects.only("title"), "/jobs/{}"),
        "experiment": (Experiment.objects.only("name"), "/experiments?experiment={}"),
        "project": (Project.objects.only("name"), "/projects/{}"),
        "person": (User.objects.only("name", "email", "proof", "erased"), ""),
    }
    for kind, (rows, url) in models.items():
        if wanted := {line.id for line in lines if line.kind == kind}:
            there = rows.in_bulk(wanted)
            for line in lines:
                if line.kind == kind and line.id in there:
                    line.name, line.url = str(there[line.id]), url.format(line.id)
    words = {"jobs": "Jobs on the cluster", "nobody": "People who are not named"}
    for line in lines:
        line.name = line.name or words.get(line.kind, line.kind)
