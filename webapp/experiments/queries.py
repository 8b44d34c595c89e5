"""Reads: lists, charts, histograms, rollouts, log. Every answer is bounded, however long a run has become."""

import json
from collections import Counter
from typing import Any

from django.db import connection
from django.db.models import Count, Prefetch, QuerySet

from webapp.datasets.models import DatasetVersion, VersionMember
from webapp.inference.models import RegisteredModel

from . import declared, shapes
from .models import ACTIVE, Artifact, Experiment, LogLine, MetricPoint, Run, RunQuerySet

MAX_CURVES = 200  # keys answered at once
MAX_POINTS_PER_PAGE = 5000
MAX_HISTOGRAMS = 60
MAX_LOG_LINES = 500


def runs(workspace_id: int) -> RunQuerySet:
    """The workspace's runs with the names they show: one query for a whole list."""
    return Run.objects.with_names().filter(experiment__workspace_id=workspace_id)


def with_outputs(rows: RunQuerySet) -> RunQuerySet:
    """With the models that each run has left in the registry: one query more, however many runs."""
    kept = Artifact.objects.filter(registered__isnull=False).select_related("registered").order_by("id")
    return rows.prefetch_related(Prefetch("artifacts", kept, to_attr="outputs_kept"))


def trained_by(version: DatasetVersion, most: int = 5) -> tuple[list[Run], bool]:
    """The newest runs that a version has trained, with their outputs, and whether there are more."""
    found = list(with_outputs(Run.objects.with_names().filter(dataset_version=version)).order_by("-id")[: most + 1])
    return found[:most], len(found) > most


def filtered_runs(
    workspace_id: int, *, experiment: int | None = None, state: str | None = None, recipe: str | None = None
) -> RunQuerySet:
    found = runs(workspace_id)
    if experiment is not None:
        found = found.filter(experiment_id=experiment)
    if state:
        found = found.filter(state__in=ACTIVE if state == "active" else [state])
    if recipe:
        found = found.filter(recipe=recipe)
    return found


def experiments(workspace_id: int) -> QuerySet[Experiment]:
    """With `run_count`."""
    return Experiment.objects.filter(workspace_id=workspace_id).annotate(run_count=Count("runs"))


# A loose scan: jumps from key to key through the (run, key, step) index instead of reading every point.
KEYS = """
WITH RECURSIVE keys AS (
    (SELECT key FROM experiments_metricpoint WHERE run_id = %(run)s ORDER BY key LIMIT 1)
    UNION ALL
    SELECT (SELECT key FROM experiments_metricpoint WHERE run_id = %(run)s AND key > keys.key ORDER BY key LIMIT 1)
    FROM keys WHERE keys.key IS NOT NULL
)
SELECT keys.key, newest.histogram IS NOT NULL
FROM keys CROSS JOIN LATERAL (
    SELECT histogram FROM experiments_metricpoint p
    WHERE p.run_id = %(run)s AND p.key = keys.key ORDER BY step DESC LIMIT 1
) AS newest
"""

# Per key, as JSON: all points where they fit, else of every bucket of steps the lowest and the highest, so that no spike is
# smoothed away, and always the first and the last point. The database writes the text, as nobody here reads the numbers.
CURVES = """
WITH points AS (
    SELECT key, step, value, extract(epoch FROM time)::float8 AS at,
        count(*) OVER whole AS n, min(step) OVER whole AS low, max(step) OVER whole AS high
    FROM experiments_metricpoint
    WHERE run_id = %(run)s AND key = ANY(%(keys)s) AND value IS NOT NULL
    WINDOW whole AS (PARTITION BY key)
), bucketed AS (
    SELECT *, (step - low)::bigint * %(buckets)s / (high - low + 1) AS bucket FROM points
), ranked AS (
    SELECT *,
        row_number() OVER (PARTITION BY key, bucket ORDER BY value, step) AS from_low,
        row_number() OVER (PARTITION BY key, bucket ORDER BY value DESC, step) AS from_high
    FROM bucketed
)
SELECT key, json_build_object(
    'steps', json_agg(step ORDER BY step), 'values', json_agg(value ORDER BY step), 'times', json_agg(at ORDER BY step)
)::text
FROM ranked
WHERE n <= %(max_points)s OR from_low = 1 OR from_high = 1 OR step IN (low, high)
GROUP BY key ORDER BY key
"""


def metric_keys(run_id: int) -> tuple[list[str], list[str]]:
    """All keys of the run, and those of them that have histograms; both sorted."""
    with connection.cursor() as cursor:
        cursor.execute(KEYS, {"run": run_id})
        rows = cursor.fetchall()
    return [key for key, _ in rows], [key for key, histogram in rows if histogram]


def curves(run: Run, keys: list[str] | None = None, max_points: int = 600) -> str:
    """JSON: `{"curves": {key: {"steps", "values", "times"}}, "keys", "histograms", "last_seq"}`.

    At most `max_points` + 2 per curve; `times` in seconds since 1970, for the time axis.

    Without `keys`, those of all curves. `last_seq` is read first: what arrives meanwhile comes again by websocket. Text, because
    objects of so many numbers take ten times the memory, once for each viewer who comes just now.
    """
    last_seq = Run.objects.values_list("last_seq", flat=True).get(id=run.id)
    known, with_histograms = metric_keys(run.id)
    drawn = _drawn(run.id, known if keys is None else [key for key in keys if key in known], max_points)
    written = ", ".join(f"{json.dumps(key)}: {curve}" for key, curve in drawn)
    beside = {"keys": known, "histograms": with_histograms, "last_seq": last_seq}
    return f'{{"curves": {{{written}}}, {json.dumps(beside)[1:]}'


def _drawn(run_id: int, keys: list[str], max_points: int) -> list[tuple[str, str]]:
    """Key and curve, as JSON, of those of the keys that have values."""
    sizes = {"max_points": max_points, "buckets": max(max_points // 2, 1)}
    with connection.cursor() as cursor:
        cursor.execute(CURVES, {"run": run_id, "keys": keys[:MAX_CURVES], **sizes})
        found: list[tuple[str, str]] = cursor.fetchall()
    return found


def points(run: Run, key: str, after_step: int | None = None, limit: int = MAX_POINTS_PER_PAGE) -> dict[str, Any]:
    """`{"key", "points", "next"}`: every point of one metric in order of steps; `next` is the `after_step` to go on."""
    found = MetricPoint.objects.filter(run=run, key=key).order_by("step")
    if after_step is not None:
        found = found.filter(step__gt=after_step)
    rows = list(found.values("step", "value", "time", "histogram")[: limit + 1])
    more, rows = len(rows) > limit, rows[:limit]
    return {"key": key, "points": rows, "next": rows[-1]["step"] if more else None}


HISTOGRAMS = """
SELECT step, histogram FROM (
    SELECT step, histogram, row_number() OVER (ORDER BY step DESC) - 1 AS back, count(*) OVER () AS n
    FROM experiments_metricpoint WHERE run_id = %(run)s AND key = %(key)s AND histogram IS NOT NULL
) AS found
WHERE back %% greatest(ceil(n::numeric / %(most)s)::int, 1) = 0
ORDER BY step
"""


def histograms(run: Run, key: str, most: int = MAX_HISTOGRAMS) -> dict[str, Any]:
    """`{"key", "steps": [{"step", "edges", "counts"}]}`: at most `most`, evenly spread, the newest always among them."""
    with connection.cursor() as cursor:
        cursor.execute(HISTOGRAMS, {"run": run.id, "key": key, "most": most})
        rows = cursor.fetchall()
    return {"key": key, "steps": [{"step": step, **_json(histogram)} for step, histogram in rows]}


def log(
    run: Run, after_seq: int | None = None, limit: int = MAX_LOG_LINES, before_seq: int | None = None
) -> dict[str, Any]:
    """`{"lines": [...]}`, oldest first: the newest lines, those after line `after_seq`, or the newest before one."""
    lines = LogLine.objects.filter(run=run)
    if before_seq is not None:
        lines = lines.filter(id__lt=before_seq)
    if after_seq is None:
        rows = list(reversed(lines.order_by("-id")[:limit]))
    else:
        rows = list(lines.filter(id__gt=after_seq).order_by("id")[:limit])
    return {"lines": [shapes.log_line(row) for row in rows]}


def compare(rows: list[Run], keys: list[str], max_points: int = 300) -> dict[str, Any]:
    """`{"runs", "config": [{"path", "values"}], "curves": {run id: {key: ...}}, "keys"}`; `values` in the runs' order.

    `config` holds the dotted paths at which the runs differ; a path that a run does not have is None there.
    """
    per_run = {row.id: json.loads(curves(row, keys, max_points)) for row in rows}
    return {
        "runs": [shapes.run(row) for row in rows],
        "config": config_diff([row.config for row in rows]),
        "curves": {str(run_id): found["curves"] for run_id, found in per_run.items()},
        "keys": sorted({key for found in per_run.values() for key in found["keys"]}),
    }


def models_by_role(run: Run) -> dict[str, RegisteredModel]:
    """What the run loads. Where several slots share a role, it names the first, and each stands under its path as well."""
    slots = list(run.slots.filter(model__isnull=False).select_related("model__base").order_by("id"))
    shared = {role for role, n in Counter(slot.role for slot in slots).items() if n > 1}
    found: dict[str, RegisteredModel] = {}
    for slot, model in ((slot, slot.model) for slot in slots):
        if model is not None:
            found.setdefault(slot.role, model)
            found |= {slot.path: model} if slot.role in shared else {}
    return found


def top_keys(rows: list[Run]) -> list[str]:
    """The headline and the stats of the runs' recipes, each once."""
    recipes = [declared.recipe_of(name) for name in dict.fromkeys(row.recipe for row in rows)]
    return list(dict.fromkeys(metric.key for recipe in recipes if recipe for metric in recipe.top))


def config_diff(configs: list[dict[str, Any]]) -> list[dict[str, Any]]:
    """The dotted paths whose values are not equal in all `configs`, sorted."""
    flat = [flattened(config) for config in configs]
    found = []
    for path in sorted(set().union(*flat)):
        values = [config.get(path) for config in flat]
        if any(value != values[0] for value in values):
            found.append({"path": path, "values": values})
    return found


def flattened(config: Any, prefix: str = "") -> dict[str, Any]:
    """`{"optim": {"lr": 1}}` -> `{"optim.lr": 1}`; items of lists are numbered, empty sections stay as they are."""
    if isinstance(config, dict) and config:
        items = list(config.items())
    elif isinstance(config, list) and config:
        items = [(str(i), item) for i, item in enumerate(config)]
    else:
        return {prefix: config}
    out: dict[str, Any] = {}
    for key, value in items:
        out.update(flattened(value, f"{prefix}.{key}" if prefix else key))
    return out


def example_lines(version_id: int, after: int, limit: int) -> list[tuple[int, str]]:
    """(position, canonical JSON) of the version's examples that follow `after`; -1 starts at the first."""
    members = VersionMember.objects.filter(version_id=version_id, position__gt=after).order_by("position")
    return list(members.values_list("position", "example__canonical")[:limit])


def _json(value: Any) -> Any:
    """Raw cursors hand jsonb out as text, because Django turns off the driver's own decoding."""
    return json.loads(value) if isinstance(value, str) else value
