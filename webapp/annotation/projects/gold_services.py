"""Turns tasks into gold tasks with answers that are known already."""

from collections import defaultdict
from collections.abc import Iterator
from dataclasses import dataclass
from itertools import islice
from random import SystemRandom
from typing import Any

from webapp.accounts.models import Membership
from webapp.core.problems import Invalid

from .. import kinds
from ..models import Answer, Project, Resolution, Task
from ..tasks import gold_candidates
from ..tasks.gold_answers import MATCHED
from . import task_services

SOURCES = ("labels", "answers")
MOST, MOST_LOOKED, CHUNK = 500, 20_000, 200
Found = tuple[Task, dict[str, Any]]


@dataclass(frozen=True)
class MarkedGold:
    """The number of gold tasks `made`, and of tasks `looked` at."""

    made: int
    looked: int


def mark(membership: Membership, project: Project, source: str, most: int, least: int = 1) -> MarkedGold:
    """Gives up to `most` tasks, drawn at random, the answer on which `least` people agree.

    `labels`: labels of the data (preferences, rubrics, reasons), for tasks that nobody has begun. `answers`: the answers of complete tasks,
    which become gold for people who come later; for rubrics and rationales the resolved answer, unanimous or consolidated by a reviewer.
    Tasks whose label cannot be an answer are passed over.
    Raises Invalid at the fields.
    """
    _check(project, source, most, least)
    made = looked = 0
    for batch in _batches(project, source):
        looked += len(batch)
        found = list(islice(_known(project, source, batch, least), most - made))
        made += len(task_services.set_gold_of(membership, project, found)) if found else 0
        if made == most:
            break
    return MarkedGold(made, looked)


def _check(project: Project, source: str, most: int, least: int) -> None:
    problems = {}
    if source not in SOURCES:
        problems["source"] = f"must be one of {', '.join(SOURCES)}"
    elif source == "labels" and project.kind not in gold_candidates.LABELLED:
        problems["source"] = "the data has no labels that fit answers of this kind"
    if not 1 <= most <= MOST:
        problems["most"] = f"must be between 1 and {MOST}"
    if not 1 <= least <= 50:
        problems["least"] = "must be between 1 and 50"
    if problems:
        raise Invalid("No task can be made gold like this.", problems)


def _batches(project: Project, source: str) -> Iterator[list[Task]]:
    """Tasks in random order, because the first ones of a dataset are seldom typical."""
    found = Task.objects.filter(project=project, overlap__isnull=False)
    found = found.filter(taken=0) if source == "labels" else found.filter(completed_at__isnull=False)
    ids = list(found.values_list("id", flat=True))
    SystemRandom().shuffle(ids)
    for start in range(0, min(len(ids), MOST_LOOKED), CHUNK):
        rows = Task.objects.filter(id__in=ids[start : start + CHUNK])
        yield list(rows.select_related("example", "project__workspace"))


def _known(project: Project, source: str, batch: list[Task], least: int) -> Iterator[Found]:
    settings = kinds.Settings.model_validate(project.settings)
    given: dict[int, list[dict[str, Any]]] = defaultdict(list)
    if source == "answers":
        answers = Answer.objects.filter(assignment__task__in=batch, current=True).order_by("id")
        for task_id, content in answers.values_list("assignment__task_id", "content"):
            given[task_id].append(content)
    settled = _settled(project, [pk for pk, contents in given.items() if len(contents) >= least])
    for task in batch:
        if source == "labels":
            content = gold_candidates.from_labels(project.kind, task.subject, task.example.content, least)
        else:
            content = gold_candidates.from_answers(project.kind, settings, given[task.pk], least) or settled.get(
                task.pk
            )
        if content is not None and _fits(task, settings, content):
            yield task, content


def _fits(task: Task, settings: kinds.Settings, content: dict[str, Any]) -> bool:
    """Whether the content can be an answer to this task: labels of the data may be longer than that."""
    try:
        task_services.known_answer(task, settings, content)
    except Invalid:
        return False
    return True


def _settled(project: Project, tasks: list[int]) -> dict[int, dict[str, Any]]:
    """The resolved answers, by people or a reviewer, of kinds that are matched by meaning."""
    if project.kind not in MATCHED:
        return {}
    sources = [Resolution.Source.UNANIMOUS, Resolution.Source.CONSOLIDATED]
    rows = Resolution.objects.filter(task__in=tasks, source__in=sources)
    return {row.task_id: gold_candidates.bare(project.kind, row.content) for row in rows if row.content}
