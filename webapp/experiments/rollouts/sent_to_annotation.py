"""Finds the rollouts of a run that were sent to annotation, their projects, and the answers of people."""

from collections import defaultdict
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from webapp.annotation import kinds
from webapp.annotation.models import Answer, Resolution, Task
from webapp.datasets.models import Dataset, Example

from ..models import Run
from .sending import LINEAGE
from .sent_examples import META, SOURCE, key_start

MOST = 500
"""Examples of one answer, the newest."""


@dataclass(frozen=True)
class AskedTask:
    """A task about rollouts. `answers` are the answers that stand, in words, without their authors; `agreed` is the resolved judgement."""

    row: Task
    answers: tuple[str, ...]
    agreed: str

    @property
    def wanted(self) -> int | None:
        """The number of people that are asked; None for a task that everybody gets."""
        return self.row.overlap


@dataclass(frozen=True)
class SentExample:
    """An example made of rollouts. Without `tasks` no project asks about it yet."""

    row: Example
    places: tuple[Mapping[str, Any], ...]
    tasks: tuple[AskedTask, ...]


def sent(run: Run, phase: str, step: int | None = None) -> list[SentExample]:
    """The examples made of the rollouts of a step, or of all steps, newest first. Five queries for any number."""
    rows = Example.objects.filter(
        dataset__in=_datasets(run), source=SOURCE, key__startswith=key_start(run.pk, phase, step)
    )
    examples = list(rows.select_related("dataset").order_by("-id")[:MOST])
    tasks = list(Task.objects.filter(example__in=examples).select_related("project").order_by("id"))
    answers = _answers(tasks)
    agreed = {row.task_id: row for row in Resolution.objects.filter(task__in=tasks)}
    told: dict[int, list[AskedTask]] = defaultdict(list)
    for task in tasks:
        told[task.example_id].append(_asked(task, answers.get(task.pk, ()), agreed.get(task.pk)))
    return [SentExample(row, tuple(row.content["meta"][META]), tuple(told[row.pk])) for row in examples]


def _datasets(run: Run) -> list[int]:
    made = Dataset.objects.filter(
        workspace_id=run.experiment.workspace_id, versions__lineage__contains={"from": LINEAGE, "run": run.pk}
    )
    return list(made.values_list("pk", flat=True).distinct())


def _answers(tasks: Sequence[Task]) -> dict[int, list[dict[str, Any]]]:
    found: dict[int, list[dict[str, Any]]] = defaultdict(list)
    rows = Answer.objects.filter(current=True, assignment__task__in=tasks).order_by("id")
    for task, content in rows.values_list("assignment__task_id", "content"):
        found[task].append(content)
    return found


def _asked(task: Task, answers: Sequence[dict[str, Any]], agreed: Resolution | None) -> AskedTask:
    kind = kinds.get_kind(task.project.kind)
    words = tuple(kind.words(each, task.subject) for each in answers)
    content = agreed.content if agreed else None
    return AskedTask(task, words, kind.words(content, task.subject) if content else "")
