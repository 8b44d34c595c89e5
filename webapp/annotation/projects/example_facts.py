"""The facts of an example that annotation shows on its page."""

from collections.abc import Iterator

from trainer.contracts.plurals import with_noun
from webapp.datasets.exploration.example_facts import ExampleFact, provide
from webapp.datasets.models import Example

from ..kinds.base import subject_words
from ..models import Task

SHOWN = 20


@provide
def tasks(example: Example) -> Iterator[ExampleFact]:
    held = Task.objects.filter(example=example).select_related("project", "resolution")
    for task in held.order_by("-id")[:SHOWN]:
        wanted = "gold" if task.overlap is None else f"{task.done} of {with_noun(task.overlap, 'answers')}"
        resolution = getattr(task, "resolution", None)
        about = f"{subject_words(task.subject)}: " if task.subject else ""
        note = f"{about}{wanted}" + (f", {resolution.get_source_display().lower()}" if resolution else "")
        title = f"{task.project.name} · {task.project.kind_title}"
        yield ExampleFact("Task", title, f"/projects/{task.project_id}/tasks/{task.pk}", note)
