"""Matching items by what they mean: a process with the embedding model, since no web or worker process loads one.

A worker starts it, as Ray starts a run, and waits for it. Where it cannot be started the groups made from words stay,
and pages say so.
"""

import json
import logging
import subprocess
from collections.abc import Iterator, Sequence
from typing import Any

from django.conf import settings
from django.db.models import Q
from django.utils import timezone

from trainer.rewards.alignment import WORDS
from webapp.annotation import consensus
from webapp.annotation.models import AgreementReport, Answer, Project, TaskReview
from webapp.annotation.queries.agreement import latest
from webapp.core import broadcast
from webapp.core.tasks import enqueue

from .standing import GIVEN_UP, bring_up_to_date, forget, placed

logger = logging.getLogger(__name__)

TASKS_PER_PROCESS = 2_000  # loading the model takes seconds, so it is worth many tasks
PATIENCE_S = 1_800


class MatcherAway(Exception):
    """The process could not be started, or failed; the message says why."""


def waiting(project: Project) -> bool:
    """Whether some task's items were matched by words only, and nobody has found that the model is missing."""
    return bool(_unmatched(project).exists())


def _unmatched(project: Project) -> Any:
    return TaskReview.objects.filter(project=project, matcher=WORDS, agreement__isnull=False)


def ask(project: Project, again: bool = False) -> bool:
    """Queues the job if tasks wait for it and none is under way. After a failure only when asked `again`."""
    report = latest(project)
    if report.pk is None or (report.match_error and not again) or not waiting(project):
        return False
    now = timezone.now()
    free = Q(matching_at=None) | Q(matching_at__lt=now - GIVEN_UP)
    if not AgreementReport.objects.filter(free, pk=report.pk).update(matching_at=now, match_error=""):
        return False
    enqueue("workers.review.match", project.pk)
    return True


def match(project_id: int) -> int:
    """Matches what waits. Returns how many tasks were; a matcher that is away is noted, not raised."""
    project = Project.objects.get(pk=project_id)
    done, error = 0, ""
    try:
        for reviews in _batches(project):
            done += _match(project, reviews)
    except MatcherAway as away:
        logger.warning("items of project %s are matched by words: %s", project_id, away)
        error = str(away)
    AgreementReport.objects.filter(project=project).update(matching_at=None, match_error=error[:1000])
    if done:
        forget(project.pk)
        bring_up_to_date(project)
    broadcast.send(f"workspace.{project.workspace_id}", {"type": "agreement", "project": project.pk})
    return done


def _batches(project: Project) -> Iterator[list[TaskReview]]:
    after = 0
    while reviews := list(_unmatched(project).filter(pk__gt=after).order_by("pk")[:TASKS_PER_PROCESS]):
        yield reviews
        after = reviews[-1].pk


def _match(project: Project, reviews: Sequence[TaskReview]) -> int:
    ids = [answer for review in reviews for answer in review.answers]
    contents = dict(Answer.objects.filter(id__in=ids).values_list("id", "content"))
    whole = [review for review in reviews if all(answer in contents for answer in review.answers)]
    what = "items" if project.kind == "rubric" else "reasons"
    lines = [
        {"id": review.pk, "kind": what, "lists": [_texts(project.kind, contents[answer]) for answer in review.answers]}
        for review in whole
    ]
    matcher, groups = run(lines)
    done = 0
    for review in whole:
        ours = [[[review.answers[which], index] for which, index in members] for members in groups[review.pk]]
        agreement = consensus.agreement(
            project.kind, [contents[answer] for answer in review.answers], placed(ours, review.answers)
        )
        # an answer or a reviewer may have been faster: then this result is for nobody
        same = TaskReview.objects.filter(pk=review.pk, matcher=WORDS, answers=review.answers)
        done += same.update(groups=ours, matcher=matcher, agreement=agreement, updated_at=timezone.now())
    return done


def _texts(kind: str, content: dict[str, Any]) -> list[str]:
    return [str(item["text"]) for item in consensus.items(kind, content)]


def run(lines: Sequence[dict[str, Any]]) -> tuple[str, dict[int, list[list[list[int]]]]]:
    """(name of the matcher, {id: groups}) for JSON lines as `trainer.matching` reads them. Raises MatcherAway."""
    text = "".join(json.dumps(line) + "\n" for line in lines)
    try:
        done = subprocess.run(
            settings.MATCH_COMMAND,
            cwd=settings.BASE_DIR,
            input=text,
            capture_output=True,
            text=True,
            timeout=PATIENCE_S,
        )
    except (OSError, subprocess.TimeoutExpired) as error:
        raise MatcherAway(f"the matcher could not be run: {error}") from error
    if done.returncode:
        last = (done.stderr.strip().splitlines() or ["it said nothing"])[-1]
        raise MatcherAway(f"the matcher failed: {last[:300]}")
    head, *rest = map(json.loads, done.stdout.splitlines())
    return str(head["matcher"]), {row["id"]: row["groups"] for row in rest}
