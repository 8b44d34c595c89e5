"""The suggestions of judges for a project's tasks, and how often people answered in the same way."""

from dataclasses import dataclass
from typing import Any

from django.db.models import Count, Q

from trainer.metrics.estimate import proportion

from .. import kinds
from ..models import Answer, Project, Task
from ..tasks import blinding

COMPARED = 20_000  # answers, the newest
LOOKED = 50  # tasks, those that are served first
WHEN = {"before": "saw it before", "after": "saw it after", "never": "never saw it"}


@dataclass(frozen=True)
class SuggestionStanding:
    """`by`: {source: tasks}. `agreement`: for each way in which people saw it, in words, how often they gave the same judgement (direction
    of a pair, verdict on a criterion), as an estimate with n."""

    tasks: int
    with_one: int
    by: dict[str, int]
    agreement: list[tuple[str, dict[str, Any]]]


def standing(project: Project) -> SuggestionStanding:
    found = Task.objects.filter(project=project)
    counted = found.aggregate(tasks=Count("pk"), given=Count("pk", filter=Q(suggestion__isnull=False)))
    rows = found.filter(suggestion__isnull=False).values_list("suggestion__by").annotate(n=Count("pk")).order_by("-n")
    return SuggestionStanding(counted["tasks"], counted["given"], dict(rows), _agreement(project))


def promised_in_vain(project: Project) -> bool:
    """Whether the settings show people a model's view, but none of the next tasks has one."""
    if kinds.Settings.model_validate(project.settings).suggestions == "never":
        return False
    first = Task.objects.filter(project=project).select_related("example").order_by("rank")[:LOOKED]
    return bool(first) and not any(_has_one(project.kind, task) for task in first)


def _has_one(kind: str, task: Task) -> bool:
    order = range(len(kinds.subject_sides(task.subject)))
    return bool(task.suggestion) or blinding.suggestion(kind, task.subject, order, task.example.content) is not None


def _agreement(project: Project) -> list[tuple[str, dict[str, Any]]]:
    """The ways are kept apart, because a person who saw the view before may have followed it."""
    answers = Answer.objects.filter(project=project, current=True, assignment__task__suggestion__isnull=False)
    same: dict[str, list[bool]] = {}
    rows = answers.order_by("-id").values_list("suggestion", "content", "assignment__task__suggestion__content")
    for when, content, suggested in rows[:COMPARED]:
        same.setdefault(when, []).extend(kinds.get_kind(project.kind).same_as(content, suggested))
    return [
        (words, proportion(sum(same[when]), len(same[when])).json()) for when, words in WHEN.items() if when in same
    ]
