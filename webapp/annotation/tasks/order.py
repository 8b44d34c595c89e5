"""The order of tasks that are served by their disagreement with a judge; computed again as the judge and people say more."""

from collections import defaultdict
from collections.abc import Sequence
from typing import Any

from django.db import transaction

from webapp.annotation import kinds
from webapp.annotation.models import Answer, Participant, Project, Task
from webapp.annotation.tasks import task_factory

from .seats import START, lock

# kinds whose answers a judge can give
SUGGESTED = frozenset(name for name, kind in kinds.KINDS.items() if kind.suggested)


def follows_disagreement(project: Project) -> bool:
    return project.strategy == Project.Strategy.DISAGREEMENT and project.kind in SUGGESTED


@transaction.atomic
def rank_anew(project: Project, tasks: Sequence[Task]) -> None:
    """Ranks these tasks (their `example` in place) by the distance of their judge from people: people in the dataset, and standing answers
    to the task. A task about which the judge or the people have said nothing keeps its rank.

    People start again at the first rank, because a task that has moved up would lie behind them. They are locked before the tasks, as in a
    claim.
    """
    given: dict[int, list[dict[str, Any]]] = defaultdict(list)
    answers = Answer.objects.filter(assignment__task__in=tasks, current=True, assignment__state="submitted")
    for task_id, content in answers.values_list("assignment__task_id", "content"):
        given[task_id].append(content)
    moved = []
    for task in tasks:
        judged = task.suggestion and task.suggestion["content"]
        score = task_factory.at_odds(project.kind, task.subject, judged, task.example.content, given[task.pk])
        rank = task.rank if score is None else task_factory.ranked(task.rank, score)
        if rank != task.rank:
            task.rank = rank
            moved.append(task)
    if moved:
        move(project, moved)


@transaction.atomic
def move(project: Project, tasks: Sequence[Task]) -> None:
    """Stores the new ranks of these tasks."""
    Participant.objects.filter(project=project, cursor__gt=START).update(cursor=START)
    lock(Task.objects.filter(pk__in=[task.pk for task in tasks]))
    Task.objects.bulk_update(tasks, ["rank"], batch_size=500)
