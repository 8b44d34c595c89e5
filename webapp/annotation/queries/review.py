"""What a reviewer sees: the tasks, least agreement first, and one task with all that was said about it."""

from collections.abc import Sequence
from dataclasses import dataclass

from webapp.annotation.models import Project, Resolution, Task, TaskReview


@dataclass(frozen=True)
class Listed:
    """A task in a list."""

    task: Task
    review: TaskReview | None
    resolution: Resolution | None

    @property
    def excerpt(self) -> str:
        return self.task.example.excerpt or self.task.example.key


def listed(project: Project, ids: Sequence[int]) -> list[Listed]:
    """These tasks in this order, in one query."""
    found = Task.objects.filter(project=project, pk__in=ids).select_related("example", "review", "resolution")
    by_id = {task.pk: Listed(task, getattr(task, "review", None), getattr(task, "resolution", None)) for task in found}
    return [by_id[pk] for pk in ids if pk in by_id]
