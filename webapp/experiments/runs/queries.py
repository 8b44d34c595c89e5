"""Reads of the list of runs, of a run's log, and of runs side by side."""

import json
from typing import Any

from django.db.models import Count, Prefetch, Q, QuerySet

from webapp.datasets.models import DatasetVersion

from .. import recipe_metrics, serializers
from ..metrics.curves import curves
from ..models import ACTIVE, Artifact, Experiment, LogLine, Run, RunQuerySet
from ..queries import runs
from .configs import config_diff

MAX_LOG_LINES = 500


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
    """Experiments with `run_count`, which leaves out drafts."""
    launched = ~Q(runs__state=Run.State.DRAFT)
    return Experiment.objects.filter(workspace_id=workspace_id).annotate(run_count=Count("runs", filter=launched))


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
    return {"lines": [serializers.log_line(row) for row in rows]}


def compare(rows: list[Run], keys: list[str], max_points: int = 300) -> dict[str, Any]:
    """`{"runs", "config": [{"path", "values"}], "curves": {run id: {key: ...}}, "keys"}`; `values` in the runs' order.

    `config` holds the dotted paths at which the runs differ; a path that a run does not have is None there.
    """
    per_run = {row.id: json.loads(curves(row, keys, max_points)) for row in rows}
    return {
        "runs": [serializers.run(row) for row in rows],
        "config": config_diff([row.config for row in rows]),
        "curves": {str(run_id): found["curves"] for run_id, found in per_run.items()},
        "keys": sorted({key for found in per_run.values() for key in found["keys"]}),
    }


def top_keys(rows: list[Run]) -> list[str]:
    """The headline and the stats of the runs' recipes, each once."""
    recipes = [recipe_metrics.recipe_of(name) for name in dict.fromkeys(row.recipe for row in rows)]
    return list(dict.fromkeys(metric.key for recipe in recipes if recipe for metric in recipe.top))


def with_outputs(rows: RunQuerySet) -> RunQuerySet:
    """The runs with the models that each has left in the registry: one more query, for any number of runs."""
    kept = Artifact.objects.filter(registered__isnull=False).select_related("registered").order_by("id")
    return rows.prefetch_related(Prefetch("artifacts", kept, to_attr="outputs_kept"))


def trained_by(version: DatasetVersion, most: int = 5) -> tuple[list[Run], bool]:
    """The newest runs that a version has trained, with their outputs, and whether there are more."""
    found = list(with_outputs(Run.objects.with_names().filter(dataset_version=version)).order_by("-id")[: most + 1])
    return found[:most], len(found) > most
