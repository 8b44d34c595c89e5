"""Studies as the API shows them."""

from dataclasses import asdict
from typing import Any

from .next_grades import GradingSoFar


def study(project: Any) -> dict[str, Any]:
    """A project as `services.studies` gives it."""
    shown = {"project": project.pk, "name": project.name, "state": project.state, "tasks": project.tasks_total}
    version = project.version
    return shown | {"answers": project.answered or 0, "dataset": version.dataset_id, "version": version.number}


def grading(found: GradingSoFar) -> dict[str, Any]:
    project = found.project
    return asdict(found.need) | {
        "project": project and project.pk,
        "dataset": project and project.version.dataset_id,
        "tasks": found.tasks,
        "complete": found.complete,
        "published": found.published and found.published.number,
        "corrected": found.corrected and found.corrected.pk,
    }
