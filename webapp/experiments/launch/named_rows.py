"""The rows that a config names, and their names today.

A config names its models and judges. A row may be renamed, and another row may get the name. So what is launched later (a trial of a sweep, a
repeat, a step that waits) or again (a fork) keeps the ids of the rows, and takes their names at the launch.
"""

from copy import deepcopy
from typing import Any

from trainer.config import RECIPES, ConfigInvalid, FieldProblem, resolve, upgrade_stored
from webapp.inference.models import RegisteredModel
from webapp.judging.models import JudgeVersion

from ..models import Run
from ..rewards.grants import value_at
from .checks import RunPlan

NamedRows = dict[str, dict[str, int]]
"""{"model" or "judge": {name, or alias of a model: id of the row}}"""


def of_plan(plan: RunPlan) -> NamedRows:
    """The rows that the names and aliases of this plan mean."""
    rows: NamedRows = {}
    for slot in plan.slots:
        row = slot.model or slot.judge
        if row is None:
            continue
        for name in {value_at(plan.config, slot.path), plan.aliases.get(slot.path)} - {None}:
            rows.setdefault("model" if slot.model else "judge", {})[name] = row.pk
    return rows


def of_run(run: Run) -> NamedRows:
    """The rows that the names in the config of a run mean. The run was checked when it was launched."""
    rows: NamedRows = {}
    config = upgrade_stored(run.recipe, run.config)
    for slot in run.slots.all():
        try:
            name = value_at(config, slot.path)
        except (LookupError, TypeError, ValueError):  # the field has moved since
            continue
        if slot.model_id:
            rows.setdefault("model", {})[name] = slot.model_id
        elif slot.judge_id:
            rows.setdefault("judge", {})[name] = slot.judge_id
    return rows


def joined(*several: NamedRows) -> NamedRows:
    """All of them in one."""
    return {
        kind: {name: pk for rows in several for name, pk in rows.get(kind, {}).items()} for kind in ("model", "judge")
    }


def config_today(run: Run) -> dict[str, Any]:
    """The config of a run, in which its models and judges have the names of today."""
    config = upgrade_stored(run.recipe, run.config)
    return renamed(run.experiment.workspace_id, run.recipe, config, of_run(run))


def renamed(workspace_id: int, recipe: str, config: dict[str, Any], rows: NamedRows) -> dict[str, Any]:
    """The config, in which these rows have the names of today. Names that `rows` lacks stay.

    Raises ConfigInvalid at the field of a row that was deleted. A config that is invalid stays as it is: the launch refuses it.
    """
    try:
        resolved = resolve(recipe, config)
    except ConfigInvalid:
        return config
    today, told, problems = _names(workspace_id, rows), deepcopy(config), []
    for slot in RECIPES[recipe].filled(resolved):
        pk = rows.get(slot.kind, {}).get(slot.name)
        if pk is None:
            continue
        if pk not in today[slot.kind]:
            problems.append(FieldProblem(slot.path, f"the {slot.kind} that was chosen, {slot.name!r}, was deleted"))
            continue
        section, _, last = slot.path.rpartition(".")
        value_at(told, section)[last] = today[slot.kind][pk]
    if problems:
        raise ConfigInvalid(problems)
    return told


def _names(workspace_id: int, rows: NamedRows) -> dict[str, dict[int, str]]:
    wanted = {kind: set(rows.get(kind, {}).values()) for kind in ("model", "judge")}
    models = RegisteredModel.objects.filter(workspace_id=workspace_id, pk__in=wanted["model"])
    judges = JudgeVersion.objects.filter(judge__workspace_id=workspace_id, pk__in=wanted["judge"])
    return {
        "model": dict(models.values_list("pk", "name")) if wanted["model"] else {},
        "judge": {row.pk: str(row) for row in judges.select_related("judge")} if wanted["judge"] else {},
    }
