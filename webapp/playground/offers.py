"""Lists what a person can choose from: models, kept checkpoints of a run, datasets, projects that take pairs."""

from typing import Any

from django.urls import reverse

from webapp.annotation.projects.collecting import collecting
from webapp.datasets import queries as datasets
from webapp.experiments.models import Artifact, Run
from webapp.experiments.outputs import artifacts
from webapp.experiments.outputs.exporting import CHECKPOINT
from webapp.inference import queries as registry
from webapp.inference.models import RegisteredModel
from webapp.judging import queries as judging

from .scoring import SINGLE

MOST = 200  # of each kind, newest first


def models(workspace_id: int) -> list[dict[str, Any]]:
    """The models that write text and are not archived: `id`, `name`, `note`."""
    rows = registry.usable(workspace_id).select_related("base")[:MOST]
    return [{"id": row.pk, "name": row.name, "note": row.base.name if row.base else ""} for row in rows]


def judges(workspace_id: int) -> list[dict[str, Any]]:
    """The judges of a single answer: `id` of a version, `name`. By name, newest version first."""
    rows = judging.usable_versions(workspace_id, SINGLE)[:MOST]
    return [{"id": row.pk, "name": f"{row} · {row.judge.title}"} for row in rows]


def reward_models(workspace_id: int) -> list[dict[str, Any]]:
    rows = registry.usable(workspace_id, RegisteredModel.Head.SCALAR)[:MOST]
    return [{"id": row.pk, "name": row.name} for row in rows]


def checkpoints(run: Run) -> list[dict[str, Any]]:
    """The run's checkpoints that are still there, newest first. `model` is None until one has been exported."""
    rows = list(Artifact.objects.filter(run=run).select_related("registered").order_by("-step"))
    made = {row.step: row.registered for row in rows if row.registered is not None and artifacts.is_there(row)}
    found = []
    for row in rows:
        if row.role == CHECKPOINT and artifacts.is_there(row):
            model = made.get(row.step)
            export = f"/api/v1/runs/{run.pk}/artifacts/{row.pk}/export"
            found.append({"id": row.pk, "step": row.step, "model": model.pk if model else None, "export": export})
    return found


def of_run(run: Run) -> dict[str, Any]:
    """The run with its checkpoints, what it began with and what it left behind."""
    left = run.artifacts.exclude(registered=None).order_by("-step", "id").values_list("registered_id", flat=True)
    return {
        "id": run.pk,
        "name": f"{run.experiment.name}, {run}",
        "base": run.model_id,
        "models": list(left[:MOST]),
        "checkpoints": checkpoints(run),
    }


def prompts(workspace_id: int) -> list[dict[str, Any]]:
    """Datasets with the newest version of each."""
    rows = datasets.datasets(workspace_id).order_by("-id")[:MOST]
    return [
        {"id": row.pk, "name": row.name, "version": row.latest[0].number, "examples": row.latest[0].counts["examples"]}  # type: ignore[attr-defined]
        for row in rows
        if row.latest and "examples" in row.latest[0].counts  # type: ignore[attr-defined]  # it is whole
    ]


def projects(workspace_id: int) -> list[dict[str, Any]]:
    return [
        {"id": row.pk, "name": row.name, "tasks": row.tasks_total, "url": reverse("project", args=[row.pk])}
        for row in collecting(workspace_id)
    ]
