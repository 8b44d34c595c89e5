"""Rollouts as JSON."""

from typing import Any

from django.urls import reverse

from trainer.contracts.rollout_examples import LEFT_OUT
from webapp.datasets.models import DatasetVersion

from ..models import Rollout
from .datasets import Preview
from .episodes import TurnOutline, TurnPage
from .sending import Prepared, SentToProject
from .sent_to_annotation import AskedTask, SentExample


def rollout(row: Rollout) -> dict[str, Any]:
    """The trainer's RolloutRecord with its place in the run."""
    return {"id": row.id, "step": row.step, **row.content}


def rollout_preview(found: Preview, cases: dict[str, int], after: int) -> dict[str, Any]:
    """`cases`: how many of each step are returned; `after`: how many before them are left out."""
    steps = [
        {
            "key": step.key,
            "title": LEFT_OUT[step.key],
            "came": step.came,
            "stayed": step.stayed,
            "left_out": len(step.left_out),
            "cases": [
                {"why": why} | {name: getattr(each, name) for name in ("example_key", "step", "group", "index", "text")}
                for each, why in step.left_out[after : after + cases[step.key]]
            ],
        }
        for step in found.steps
    ]
    return {"responses": found.responses, "stayed": found.stayed, "prompts": found.prompts, "steps": steps}


def sent_to_project(found: SentToProject) -> dict[str, Any]:
    project = found.project
    where = {"project": project.pk, "dataset": project.version.dataset_id, "version": project.version_id}
    return where | {"new": found.new, "before": found.before, "left_out": found.prepared.left_out}


def sent_to_dataset(prepared: Prepared, version: DatasetVersion, new: int) -> dict[str, Any]:
    where = {"project": None, "dataset": version.dataset_id, "version": version.pk}
    return where | {"new": new, "before": len(prepared.records) - new, "left_out": prepared.left_out}


def sent_example(found: SentExample) -> dict[str, Any]:
    return {
        "example": found.row.pk,
        "key": found.row.key,
        "dataset": found.row.dataset_id,
        "rollouts": [{name: each[name] for name in ("step", "group", "index")} for each in found.places],
        "tasks": [_asked(each) for each in found.tasks],
    }


def _asked(found: AskedTask) -> dict[str, Any]:
    project = found.row.project
    return {
        "project": project.pk,
        "name": project.name,
        "kind": project.kind,
        "task": found.row.pk,
        "url": reverse("project_task", args=[project.pk, found.row.pk]),
        "done": found.row.done,
        "wanted": found.wanted,
        "answers": list(found.answers),
        "agreed": found.agreed,
    }


def turns(found: TurnPage) -> dict[str, Any]:
    following = None if found.next is None else str(found.next)
    return {"items": [_turn(each) for each in found.items], "next": following, "total": found.total}


def _turn(found: TurnOutline) -> dict[str, Any]:
    return {**vars(found), "title": found.title}
