"""The costs of the work of a workspace: hours of processes and GPUs, tokens and money of endpoints, and minutes of people.

Hours, tokens and money come from the ledger (`webapp.usage`), minutes from the seats of tasks. Each source is one SELECT with the same
columns. What was not measured is null there, never 0; a sum leaves it out, and is null itself if nothing of it was measured.

The hours of an attempt belong to the months (UTC) in which they passed. For one month an attempt is cut at the month's ends. By month, only
attempts that cross the end of a month are split, because a series of months for every attempt takes longer than all the rest.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import date, datetime
from typing import Any

from django.db import connection

from webapp.accounts.models import Membership, User
from webapp.annotation.access import may_name
from webapp.annotation.models import Project
from webapp.evaluation.models import Evaluation
from webapp.experiments.models import Experiment, Run
from webapp.judging.models import Judge
from webapp.usage.models import WorkKind
from webapp.weights.models import WeightsJob

MOST = 200  # rows of a page
MEASURES = ("hours", "gpu_hours", "tokens", "money", "minutes")
COLUMNS = "month, kind, work, place, person, hours, gpu_hours, tokens, money, minutes, without_hours, without_gpus, untold, unpriced, without_minutes"
# pieces of an attempt: (from, to), which is null if nobody knows when it ended. `least` passes over null: then it is under way
WHOLE = """SELECT date_trunc('month', span.began AT TIME ZONE 'UTC') AS month, span.began AS low,
    CASE WHEN span.measured THEN greatest(span.began, least(span.ended, %(now)s)) END AS high"""
CUT = """SELECT %(first)s::timestamp AS month, greatest(span.began, %(begin)s) AS low,
    CASE WHEN span.measured THEN greatest(span.began, least(span.ended, %(now)s, %(end)s)) END AS high"""
WITHIN = """date_trunc('month', span.began AT TIME ZONE 'UTC') =
    date_trunc('month', CASE WHEN span.measured THEN least(span.ended, %(now)s) ELSE span.began END AT TIME ZONE 'UTC')"""
SPLIT = """SELECT each.month, greatest(span.began, each.month AT TIME ZONE 'UTC') AS low,
        least(span.ended, %(now)s, (each.month + interval '1 month') AT TIME ZONE 'UTC') AS high
    FROM generate_series(date_trunc('month', span.began AT TIME ZONE 'UTC'), least(span.ended, %(now)s) AT TIME ZONE 'UTC',
        interval '1 month') AS each (month)
    WHERE each.month AT TIME ZONE 'UTC' < least(span.ended, %(now)s)"""
SPANS = """
SELECT piece.month, span.kind, span.work, span.place, span.person_id AS person, piece.hours, piece.hours * span.gpus AS gpu_hours,
    NULL::bigint AS tokens, NULL::numeric AS money, NULL::float8 AS minutes, piece.hours IS NULL AS without_hours,
    piece.hours IS NULL OR span.gpus IS NULL AS without_gpus, 0::bigint AS untold, 0::bigint AS unpriced, 0 AS without_minutes
FROM usage_workspan AS span CROSS JOIN LATERAL (
    SELECT cut.month, extract(epoch FROM cut.high - cut.low)::float8 / 3600 AS hours FROM ({pieces}) AS cut
) AS piece
WHERE span.workspace_id = %(workspace)s AND span.began <= %(now)s AND {which}
"""
OF_MONTH = """span.began < %(end)s AND (CASE WHEN span.measured THEN greatest(span.began, least(span.ended, %(now)s)) ELSE span.began END > %(begin)s
    OR span.began >= %(begin)s)"""
USES = """
SELECT used.month::timestamp, used.kind, used.work, used.place, used.person_id, NULL, NULL,
    CASE WHEN used.calls > used.untold THEN used.prompt_tokens + used.completion_tokens + used.other_tokens END,
    CASE WHEN used.calls > used.unpriced THEN used.money END, NULL, false, false, used.untold, used.unpriced, 0
FROM usage_monthlyuse AS used WHERE used.workspace_id = %(workspace)s
"""
# another program trains them and says nothing of its hours, so the ledger has none
LOGGED = """
SELECT date_trunc('month', coalesce(run.ended_at, %(now)s) AT TIME ZONE 'UTC'), 'run', run.id, run.experiment_id, run.created_by_id,
    NULL, NULL, NULL, NULL, NULL, true, true, 0, 0, 0
FROM experiments_run AS run JOIN experiments_experiment AS experiment ON experiment.id = run.experiment_id
WHERE experiment.workspace_id = %(workspace)s AND run.recipe = 'logged' AND run.started_at IS NOT NULL
"""
PEOPLE = """
SELECT date_trunc('month', coalesce(seat.submitted_at, seat.claimed_at) AT TIME ZONE 'UTC'), 'project', seat.project_id, NULL,
    CASE WHEN %(named)s OR seat.user_id = %(me)s THEN seat.user_id END, NULL, NULL, NULL, NULL, nullif(seat.seconds, 0) / 60,
    false, false, 0, 0, (seat.seconds = 0)::integer
FROM annotation_assignment AS seat JOIN annotation_project AS project ON project.id = seat.project_id
WHERE project.workspace_id = %(workspace)s AND (seat.submitted_at IS NOT NULL OR seat.seconds > 0)
"""
KEYS: Mapping[str, tuple[str, str]] = {
    "month": ("to_char(month, 'YYYY-MM')", "0::bigint"),
    "project": (
        "CASE WHEN kind = 'run' THEN 'experiment' ELSE kind END",
        "CASE kind WHEN 'run' THEN coalesce(place, 0) WHEN 'project' THEN work ELSE 0 END",
    ),
    "run": ("kind", "CASE WHEN kind IN ('trial', 'tried') THEN 0 ELSE work END"),
    "person": ("CASE WHEN person IS NULL THEN 'nobody' ELSE 'person' END", "coalesce(person, 0)"),
}
"""For each way of grouping, the SQL of the kind and of the id of a line."""
SUMS = ", ".join(f"sum({name})" for name in MEASURES)
# a run whose hours nobody knows is one, however many attempts it had: only runs and jobs have hours, and one number names both, because rows
# of two columns take much longer to sort. Calls and tasks are counted one by one
UNKNOWN = """count(DISTINCT CASE kind WHEN 'run' THEN work ELSE -work END) FILTER (WHERE without_hours),
    count(DISTINCT CASE kind WHEN 'run' THEN work ELSE -work END) FILTER (WHERE without_gpus), sum(untold), sum(unpriced),
    sum(without_minutes)"""


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
    sorted_by: str | None = None
    name: str = ""
    url: str = ""


@dataclass(frozen=True)
class CostTable:
    lines: Sequence[CostLine]
    total: CostLine
    more: bool


@dataclass(frozen=True)
class After:
    """The last line of a page: what it was sorted by (None: missing), its kind and its id."""

    value: str | None
    kind: str
    id: int

    @classmethod
    def of(cls, last: CostLine) -> "After":
        return cls(last.sorted_by, last.kind, last.id)


def table(
    membership: Membership,
    by: str,
    month: date | None,
    sort: str,
    now: datetime,
    most: int = MOST,
    *,
    run: int | None = None,
    after: After | None = None,
    named: bool = True,
) -> CostTable:
    """The use in a month, or in all of them, by month, project, piece of work or person: the largest `sort` first, and of months the
    newest.

    `run` narrows it to one run. `after` continues behind a line; the total is that of all lines. Without `named`, minutes have the name of
    the caller alone, in any role.
    """
    kind, key = KEYS[by]
    narrowed = ["month = %(first)s::timestamp"] * (month is not None) + ["kind = 'run' AND work = %(run)s"] * (
        run is not None
    )
    within = f"WHERE {' AND '.join(narrowed)}" if narrowed else ""
    sources = " UNION ALL ".join([*_spans(by, month), USES, LOGGED, PEOPLE])
    value = "NULL::numeric" if by == "month" else f"round(sum({sort})::numeric, 9)"
    order = "line DESC, id" if by == "month" else "value DESC NULLS LAST, line, id"
    sql = f"""
        WITH used ({COLUMNS}) AS ({sources}), lines AS (
            SELECT {kind} AS line, {key} AS id, {SUMS}, {UNKNOWN}, {value} AS value, grouping({kind}) AS together
            FROM used {within} GROUP BY GROUPING SETS (({kind}, {key}), ())
        )
        SELECT * FROM lines {_behind(by, after)} ORDER BY together DESC, {order} LIMIT %(most)s
    """  # noqa: S608  built from constants
    asked: dict[str, Any] = {
        "workspace": membership.workspace_id,
        "now": now,
        "named": named and may_name(membership),
        "me": membership.user_id,
        "most": most + 2,
        "run": run,
    }
    asked |= {"value": after.value, "line": after.kind, "id": after.id} if after else {}
    with connection.cursor() as cursor:
        cursor.execute(sql, asked | (bounds(month) if month else {}))
        found = [_line(row) for row in cursor.fetchall()]
    total, lines = found[0], found[1:]
    _name(lines[:most])
    return CostTable(lines[:most], total, len(lines) > most)


def _behind(by: str, after: After | None) -> str:
    if after is None:
        return ""
    if by == "month":
        return "WHERE together = 1 OR line < %(line)s"
    later = "(line, id) > (%(line)s, %(id)s)"
    if after.value is None:
        return f"WHERE together = 1 OR (value IS NULL AND {later})"
    return (
        f"WHERE together = 1 OR value IS NULL OR value < %(value)s::numeric OR (value = %(value)s::numeric AND {later})"
    )


def _spans(by: str, month: date | None) -> list[str]:
    """The attempts, in the pieces that the table needs."""
    if month is not None:
        return [SPANS.format(pieces=CUT, which=OF_MONTH)]
    if by != "month":
        return [SPANS.format(pieces=WHOLE, which="true")]
    return [SPANS.format(pieces=pieces, which=which) for pieces, which in ((WHOLE, WITHIN), (SPLIT, f"NOT ({WITHIN})"))]


def bounds(month: date) -> dict[str, str]:
    """The first day of the month, and its begin and end."""
    following = date(month.year + month.month // 12, month.month % 12 + 1, 1)
    return {"first": f"{month}", "begin": f"{month}T00:00:00+00:00", "end": f"{following}T00:00:00+00:00"}


def _line(row: tuple[Any, ...]) -> CostLine:
    values, unknown = row[2:7], row[7:12]
    amounts = {
        name: MeasuredCost(None if value is None else float(value), int(missing or 0))
        for name, value, missing in zip(MEASURES, values, unknown, strict=True)
    }
    return CostLine(row[0] or "", row[1] or 0, amounts, None if row[12] is None else str(row[12]))


def _name(lines: Sequence[CostLine]) -> None:
    """Names and addresses: one query for each kind of row that there is."""
    models: dict[str, tuple[Any, str]] = {
        "run": (Run.objects.only("name", "number"), "/runs/{}"),
        "job": (WeightsJob.objects.only("title"), "/jobs/{}"),
        "evaluation": (Evaluation.objects.only("name"), "/evaluations/{}"),
        "judge": (Judge.objects.only("name"), "/judges/{}"),
        "experiment": (Experiment.objects.only("name"), "/experiments?experiment={}"),
        "project": (Project.objects.only("name"), "/projects/{}"),
        "person": (User.objects.only("name", "email", "proof", "erased"), ""),
    }
    for kind, (rows, url) in models.items():
        if wanted := {line.id for line in lines if line.kind == kind and line.id}:
            there = rows.in_bulk(wanted)
            for line in lines:
                if line.kind == kind and line.id in there:
                    line.name, line.url = str(there[line.id]), url.format(line.id)
    for line in lines:
        line.name = line.name or _without_row(line)


TOGETHER = {
    "job": "Jobs on the cluster",
    "evaluation": "Evaluations",
    "trial": "Trials of judges",
    "tried": "Answers scored on Try it",
    "judge": "Judges, asked for themselves",
    "nobody": "People who are not named",
}


def _without_row(line: CostLine) -> str:
    """The name of a line of several pieces of work, or of one that was deleted."""
    if line.id:
        word = WorkKind(line.kind).label if line.kind in WorkKind else line.kind.capitalize()
        return f"{word} {line.id}, deleted"
    return TOGETHER.get(line.kind, line.kind)
