"""Studies as the API shows them."""

from typing import Any


def study(project: Any) -> dict[str, Any]:
    """A project as `services.studies` gives it."""
    shown = {"project": project.pk, "name": project.name, "state": project.state, "tasks": project.tasks_total}
    version = project.version
    return shown | {"answers": project.answered or 0, "dataset": version.dataset_id, "version": version.number}
