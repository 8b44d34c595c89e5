"""Matches items by meaning, in a process with the embedding model, because no web or worker process loads one.

A worker starts it, as Ray starts a run, and stores each result as it comes. If a worker dies, only the task in progress is lost, and the
next worker continues after it. If the process cannot be started, the groups made from words stay, and pages say so.
"""

import json
import subprocess
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from datetime import timedelta
from tempfile import TemporaryFile
from threading import Timer
from typing import IO, Any

from django.conf import settings
from django.db.models import QuerySet
from django.utils import timezone

from trainer.rewards.alignment import WORDS
from webapp.annotation.agreement import consensus
from webapp.annotation.models import Answer, Job, Project, TaskReview
from webapp.annotation.tasks import gold_answers
from webapp.core import broadcast
from webapp.core.background.children import environment
from webapp.core.problems import Problem

from ..jobs import runner
from .refresh import bring_up_to_date, groups_by_position, mark_outdated

TASKS_PER_PROCESS = 2_000  # loading the model takes seconds, so it handles many tasks
PATIENCE_S = 1_800
AGAIN_AFTER = timedelta(hours=1)  # a matcher that was missing may be available by then

Groups = list[list[list[int]]]


class MatcherAway(Problem):
    """The process could not be started, or failed; the message says why."""


def waiting(project: Project) -> bool:
    """Whether some task's items were matched by words only, and the model was not found missing."""
    return bool(_unmatched(project).exists())


def _unmatched(project: Project) -> Any:
    return TaskReview.objects.filter(project=project, matcher=WORDS, agreement__isnull=False)


def unmarked(project: Project) -> QuerySet[Answer]:
    """Answers to gold tasks that have not been compared with the known answer yet."""
    found = Answer.objects.filter(project=project, current=True, gold_right=None, assignment__task__overlap=None)
    return found if project.kind in gold_answers.MATCHED else found.none()


def ask(project: Project, again: bool = False) -> bool:
    """Queues the job if something waits for it and none is under way. Soon after a failure only if `again`."""
    last = Job.objects.filter(project=project, kind=Job.Kind.MATCH).first()
    if last and (last.open or (last.state == Job.State.FAILED and not again and not _long_ago(last))):
        return False
    if not waiting(project) and not unmarked(project).exists():
        return False
    return runner.start(project, Job.Kind.MATCH) is not None


def _long_ago(job: Job) -> bool:
    return job.finished_at is not None and job.finished_at < timezone.now() - AGAIN_AFTER


def ask_where_gold_waits() -> int:
    """Called by beat, because not every answer to a gold task is followed by a page view. Returns the number of jobs it queued."""
    held = Answer.objects.filter(current=True, gold_right=None, assignment__task__overlap=None)
    projects = Project.objects.filter(kind__in=gold_answers.MATCHED, pk__in=held.values("project"))
    return sum(map(ask, projects))


@runner.does(Job.Kind.MATCH)
def match(job: Job, report: runner.Report) -> None:
    """Matches everything that waits. Raises MatcherAway; what was matched until then stays."""
    project = job.project
    reviews, marks = 0, 0
    total = _unmatched(project).count() + unmarked(project).count()
    try:
        for batch in _batches(_unmatched(project)):
            for done in _match(project, batch):
                reviews += done
                report.at(reviews, total)
        for answers in _batches(unmarked(project).select_related("assignment__task")):
            for _ in _mark(project, answers):
                marks += 1
                report.at(reviews + marks, total)
    finally:
        job.result = {"tasks": reviews, "gold": marks}
        if reviews or marks:
            mark_outdated(project.pk)
            bring_up_to_date(project)
        else:
            broadcast.send(f"workspace.{project.workspace_id}", {"type": "agreement", "project": project.pk})


def _batches(waiting: QuerySet[Any]) -> Iterator[list[Any]]:
    after = 0
    while rows := list(waiting.filter(pk__gt=after).order_by("pk")[:TASKS_PER_PROCESS]):
        yield rows
        after = rows[-1].pk


def _match(project: Project, reviews: Sequence[TaskReview]) -> Iterator[int]:
    """Yields for each review whether it took its result: 1 or 0."""
    ids = [answer for review in reviews for answer in review.answers]
    contents = dict(Answer.objects.filter(id__in=ids).values_list("id", "content"))
    whole = {review.pk: review for review in reviews if all(answer in contents for answer in review.answers)}
    lists = {pk: [_texts(project.kind, contents[answer]) for answer in review.answers] for pk, review in whole.items()}
    for matcher, pk, groups in run(project.kind, lists):
        review = whole[pk]
        ours = [[[review.answers[which], index] for which, index in members] for members in groups]
        given = [contents[answer] for answer in review.answers]
        agreement = consensus.agreement(project.kind, given, groups_by_position(ours, review.answers))
        # an answer or a reviewer may have been faster: then this result is not used
        same = TaskReview.objects.filter(pk=pk, matcher=WORDS, answers=review.answers)
        yield same.update(groups=ours, matcher=matcher, agreement=agreement, updated_at=timezone.now())


def _mark(project: Project, answers: Sequence[Answer]) -> Iterator[int]:
    """Compares each answer with the known answer of its task; yields the number of rows that took the result."""
    known = {answer.pk: answer.assignment.task.gold or {} for answer in answers}
    content = {answer.pk: answer.content for answer in answers}
    lists = {pk: [_texts(project.kind, known[pk]), _texts(project.kind, content[pk])] for pk in known}
    for matcher, pk, groups in run(project.kind, lists):
        marked = gold_answers.matched(project.settings, lists[pk][0], groups, matcher)
        # the known answer may have changed meanwhile: then the next job marks it
        same = Answer.objects.filter(pk=pk, assignment__task__gold=known[pk])
        yield same.update(gold_right=marked["recall"] >= marked["least"], gold_detail=marked)


def _texts(kind: str, content: dict[str, Any]) -> list[str]:
    return [str(item["text"]) for item in consensus.items(kind, content)]


def run(kind: str, lists: dict[int, list[list[str]]]) -> Iterator[tuple[str, int, Groups]]:
    """(name of the matcher, id, groups) for each id's lists of texts, as they are found. Raises MatcherAway."""
    if not lists:
        return
    what = "items" if kind == "rubric" else "reasons"
    lines = [json.dumps({"id": pk, "kind": what, "lists": each}) for pk, each in lists.items()]
    with _process() as (process, errors):
        assert process.stdin is not None and process.stdout is not None  # noqa: S101  both are pipes
        try:
            process.stdin.write("".join(line + "\n" for line in lines))  # it reads all of its input before it writes
            process.stdin.close()
        except BrokenPipeError:
            pass  # it has ended; the error is raised below
        head: dict[str, Any] = {}
        found = 0
        for line in process.stdout:
            said = json.loads(line)
            if "matcher" in said:
                head = said
                continue
            found += 1
            yield str(head["matcher"]), said["id"], said["groups"]
        if process.wait() or found < len(lines):
            errors.seek(0)
            last = (errors.read().strip().splitlines() or ["it said nothing"])[-1]
            raise MatcherAway(f"the matcher failed: {last[:300]}")


@contextmanager
def _process() -> Iterator[tuple[subprocess.Popen[str], IO[str]]]:
    """The matcher process and its standard error. The process ends with the block, however that ends."""
    pipe = subprocess.PIPE
    with TemporaryFile("w+") as errors:
        try:
            started = subprocess.Popen(
                settings.MATCH_COMMAND,
                cwd=settings.BASE_DIR,
                env=environment(),
                stdin=pipe,
                stdout=pipe,
                stderr=errors,
                text=True,
            )
        except OSError as error:
            raise MatcherAway(f"the matcher could not be run: {error}") from error
        patience = Timer(PATIENCE_S, started.kill)
        patience.start()
        with started as process:
            try:
                yield process, errors
            finally:
                patience.cancel()
                process.kill()
