"""The parts of the run pages beyond the row itself: the config against its defaults, the lineage, the last lines of the log."""

import json
from dataclasses import dataclass
from typing import Any

from trainer.config import RECIPES
from trainer.config.recipe import Metric
from webapp.core.forms.formtree import Tree, as_text, flatten
from webapp.core.forms.model_schemas import schema_of
from webapp.core.network.addresses import public_url

from .. import queries, recipe_metrics
from ..models import Artifact, LogLine, Run
from ..outputs import artifacts
from ..rollouts import datasets
from . import configs

LAST_LINES = 12
MAX_RELATED = 50


@dataclass(frozen=True)
class ConfigRow:
    path: str
    value: str
    default: str
    changed: bool


@dataclass(frozen=True)
class Stat:
    """A metric and its newest value, None if there is none yet."""

    metric: Metric
    value: float | None


def config_rows(run: Run) -> list[ConfigRow]:
    """The resolved config by dotted path; `changed` if it differs from the recipe's default."""
    recipe = RECIPES.get(run.recipe)
    defaults = flatten(Tree(schema_of(recipe.schema)).defaults(run.config)) if recipe else {}
    place = {path: i for i, path in enumerate(defaults)}  # Postgres keeps JSON keys in an order of its own
    section = {path.split(".")[0]: i for path, i in reversed(place.items())}
    flat = flatten(run.config)
    order = sorted(
        flat, key=lambda path: (section.get(path.split(".")[0], len(place)), place.get(path, len(place)), path)
    )
    return [
        ConfigRow(
            path, as_text(flat[path]), as_text(defaults.get(path)), path not in defaults or defaults[path] != flat[path]
        )
        for path in order
    ]


def last_lines(run: Run) -> list[LogLine]:
    """The end of the log, oldest first: the last lines of a failed run."""
    return list(LogLine.objects.filter(run=run).order_by("-id")[:LAST_LINES])[::-1]


def has_siblings(run: Run) -> bool:
    """Whether its experiment has other runs in the table."""
    others = queries.runs(run.experiment.workspace_id).filter(experiment=run.experiment_id, archived_at=None)
    return others.exclude(pk=run.pk).exists()


def lineage(run: Run) -> dict[str, Any]:
    """Parents, forks, artifacts, and the call of the API that launches the same again."""
    ancestors: list[Run] = []
    seen, parent = {run.id}, run.forked_from_id
    while parent and parent not in seen and len(ancestors) < MAX_RELATED:
        row = queries.runs(run.experiment.workspace_id).filter(id=parent).first()
        if row is None:
            break
        ancestors.append(row)
        seen.add(row.id)
        parent = row.forked_from_id
    forks = list(queries.runs(run.experiment.workspace_id).filter(forked_from=run).order_by("id")[:MAX_RELATED])
    return {
        "parents": [(row, configs.config_diff([row.config, run.config])) for row in ancestors[:1]],
        "ancestors": ancestors[1:],
        "forks": [(row, configs.config_diff([run.config, row.config])) for row in forks],
        "datasets": datasets.made_of(run)[:MAX_RELATED],
        "slots": run.slots.select_related("model", "judge__judge").order_by("id"),
        **_artifacts(run),
        "command": "" if run.is_logged else curl(run),
    }


def _artifacts(run: Run) -> dict[str, Any]:
    """The files that are still in the run's folder, how many of its checkpoints newer ones replaced, and how many a rule removed."""
    rows = list(Artifact.objects.filter(run=run).select_related("registered").order_by("-step", "role")[:200])
    there = [row for row in rows if artifacts.is_there(row)]
    removed = sum(row.removed_at is not None for row in rows)
    return {"artifacts": there, "gone": len(rows) - len(there) - removed, "removed": removed}


def curl(run: Run) -> str:
    """A command that launches the same run through the API; the token stays in the caller's environment."""
    version = run.data
    body = {
        "recipe": run.recipe,
        "config": run.config,
        "dataset": {"id": version.dataset_id, "version": version.number},
        "model": run.base.name,
        "experiment": run.experiment.name,
        "retries": run.retries,
    }
    text = json.dumps(body, indent=2, ensure_ascii=False).replace("'", "'\\''")
    return (
        f"curl -sS {public_url()}/api/v1/runs \\\n"
        '  -H "Authorization: Bearer $TOUCHSTONE_TOKEN" \\\n'
        "  -H 'Content-Type: application/json' \\\n"
        f"  -d '{text}'"
    )


def stats(run: Run) -> list[Stat]:
    """The numbers beside the headline at the top of a run's page; a number that not every run measures only if it exists."""
    recipe = recipe_metrics.recipe_of(run.recipe)
    found = [Stat(metric, run.summary.get(metric.key)) for metric in recipe.top] if recipe else []
    return [
        stat
        for stat in found
        if recipe and stat.metric.key != recipe.headline and (stat.value is not None or not stat.metric.optional)
    ]
