"""Agreement of the answers to each task, the project's coefficients and its people's figures, kept up to date as answers come in.

Pages and the API call `current_report`. If little is new, the work is done at once. If much is new, a job does it and readers see the last result
with its time. Nothing here judges a person. Only tasks whose answers are all equal are resolved, as unanimous.
"""

from collections import defaultdict
from collections.abc import Collection, Iterable, Mapping, Sequence
from datetime import timedelta
from secrets import randbelow
from typing import Any

from django.db import transaction
from django.db.models import BigIntegerField, Case, F, Q, Value, When
from django.utils import timezone

from trainer.rewards.alignment import WORDS, WORDS_THRESHOLD, group, words_similarity
from webapp.annotation.agreement import consensus, person_figures
from webapp.annotation.agreement.coefficients import measure, newest_answer
from webapp.annotation.models import AgreementReport, Answer, Project, Resolution, Task, TaskReview
from webapp.core import broadcast
from webapp.core.tasks import enqueue, silent

from ..tasks.order import follows_disagreement, rank_anew

AT_ONCE = 300  # answers a request may process by itself
BATCH = 500
LATE = 1_000  # ids are given before the commit: an answer may appear after as many newer ones
GIVEN_UP = timedelta(minutes=15)  # a job that began longer ago died
STANDS = Q(current=True, assignment__state="submitted")
# sources of resolutions that follow from the answers, and end when the answers change
AUTOMATIC = (Resolution.Source.UNANIMOUS, Resolution.Source.MAJORITY)


def current_report(project: Project) -> AgreementReport:
    """The project's report, up to date if that is quick; otherwise a job is queued (`started_at` says since when).

    Most readers want neither of its large parts, so each part is loaded when it is read.
    """
    report, _ = AgreementReport.objects.defer("body", "people").get_or_create(project=project)
    newest = newest_answer(project)
    if report.through == newest and report.computed_at:
        return report
    few = Answer.objects.filter(project=project, current=True)[: AT_ONCE + 1].count() <= AT_ONCE
    if few:
        return bring_up_to_date(project)
    now = timezone.now()
    free = Q(started_at=None) | silent("started_at", GIVEN_UP)
    if AgreementReport.objects.filter(free, pk=report.pk).update(started_at=now):
        report.started_at = now
        enqueue("workers.review.measure", project.pk)
    return report


def bring_up_to_date(project: Project) -> AgreementReport:
    """Reviews what is new, then measures everything. If two processes do it at once, that costs time but does no harm."""
    # a mark that no other measurement has: if it is gone in the end, something changed that may not be counted
    mark = -2 - randbelow(2**60)
    AgreementReport.objects.update_or_create(project=project, defaults={"through": mark})
    mine = AgreementReport.objects.filter(project=project)
    newest = newest_answer(project)
    # people's figures take a moment, all else much longer: a reader has them meanwhile
    mine.update(people=person_figures.measure(project))
    review_new(project)
    counted = Case(When(through=mark, then=Value(newest)), default=F("through"), output_field=BigIntegerField())
    mine.update(through=counted, body=measure(project), computed_at=timezone.now(), started_at=None)
    found: AgreementReport = mine.get()
    broadcast.send(f"workspace.{project.workspace_id}", {"type": "agreement", "project": project.pk})
    return found


def mark_outdated(project_id: int) -> None:
    """Marks the report as outdated, because answers have changed in a way that their ids do not show: the next reader starts a new
    measurement."""
    AgreementReport.objects.filter(project_id=project_id).update(through=-1)


def review_again(project_id: int, task_ids: Collection[int]) -> None:
    """Calls `mark_outdated` if answers to these tasks stand again, or no longer: nothing else would have the tasks reviewed again."""
    mark_outdated(project_id)
    transaction.on_commit(lambda: review_tasks(Project.objects.get(pk=project_id), task_ids))


def review_all_again(project_id: int) -> None:
    """`review_again` for all tasks of a project, when `review_new` runs the next time."""
    AgreementReport.objects.filter(project_id=project_id).update(through=-1, reviewed=0)


def review_new(project: Project) -> int:
    """Reviews the tasks answered since the last time. Returns the number of these answers."""
    report, _ = AgreementReport.objects.get_or_create(project=project)
    after, seen = max(0, report.reviewed - LATE), 0
    answers = Answer.objects.filter(project=project, current=True).order_by("id")
    while rows := list(answers.filter(id__gt=after).values_list("id", "assignment__task_id")[:BATCH]):
        review_tasks(project, {task for _, task in rows})
        after, seen = rows[-1][0], seen + len(rows)
        AgreementReport.objects.filter(pk=report.pk, reviewed__lt=after).update(reviewed=after)
    return seen


def review_tasks(project: Project, task_ids: Iterable[int]) -> None:
    """Writes the review of each task whose answers have changed, and resolves the unanimous ones. A task whose answers are the same may
    have become complete since its review, because it has fewer seats now.

    Groups that a model or a person made stay as long as their answers stand. Gold tasks are left out, because they have a known answer.
    """
    tasks = {task.pk: task for task in project.tasks.filter(pk__in=task_ids, overlap__isnull=False)}
    contents: dict[int, dict[int, Any]] = defaultdict(dict)
    standing = Answer.objects.filter(STANDS, project=project, assignment__task__in=tasks).order_by("id")
    for answer, task, content in standing.values_list("id", "assignment__task_id", "content"):
        contents[task][answer] = content
    known = {review.task_id: review for review in TaskReview.objects.filter(task__in=tasks)}
    changed, same = [], []
    for task_id in tasks:
        before = known.get(task_id)
        if before is None or before.answers != list(contents[task_id]):
            changed.append(_review(project, task_id, contents[task_id]))
        else:
            same.append(before)
    with transaction.atomic():
        _store(changed)
        # a resolution without a person no longer holds once the answers have changed; a reviewer's decision stays
        Resolution.objects.filter(task__in=[review.task_id for review in changed], source__in=AUTOMATIC).delete()
        resolved = set(Resolution.objects.filter(task__in=tasks).values_list("task_id", flat=True))
        _settle(tasks, contents, [each for each in changed + same if each.task_id not in resolved])
    if follows_disagreement(project):
        moving = Task.objects.filter(pk__in=[review.task_id for review in changed], completed_at=None)
        rank_anew(project, list(moving.select_related("example")))


def review_where_the_order_follows() -> int:
    """Called by beat, because answers change the order of tasks without a page view. Returns the number of new answers.

    Only in projects that are open and served by disagreement with the judge. All others wait for a reader.
    """
    served = Project.objects.filter(state=Project.State.OPEN, strategy=Project.Strategy.DISAGREEMENT)
    known = dict(AgreementReport.objects.filter(project__in=served).values_list("project_id", "reviewed"))
    behind = [project for project in served if newest_answer(project) > known.get(project.pk, 0)]
    return sum(map(review_new, behind))


def _review(project: Project, task_id: int, answers: dict[int, Any]) -> TaskReview:
    groups = by_words(project.kind, answers)
    return TaskReview(
        task_id=task_id,
        project=project,
        answers=list(answers),
        groups=groups,
        matcher=WORDS if groups else "",
        agreement=consensus.agreement(project.kind, list(answers.values()), groups_by_position(groups, list(answers))),
        updated_at=timezone.now(),
    )


def _store(reviews: Sequence[TaskReview]) -> None:
    fields = ["answers", "groups", "matcher", "agreement", "updated_at"]
    TaskReview.objects.bulk_create(reviews, update_conflicts=True, unique_fields=["task"], update_fields=fields)


def by_words(kind: str, answers: dict[int, Any]) -> list[list[list[int]]] | None:
    """Groups of items with the same words: [[[answer id, index], ...], ...]; None without items."""
    places = [(answer, index) for answer in answers for index in range(len(consensus.items(kind, answers[answer])))]
    if not places:
        return None
    texts = [str(consensus.items(kind, answers[answer])[index]["text"]) for answer, index in places]
    found = group(words_similarity(texts), [answer for answer, _ in places], WORDS_THRESHOLD)
    return [[list(places[item]) for item in members] for members in found]


def groups_by_position(groups: Sequence[Sequence[Sequence[int]]] | None, answers: Sequence[int]) -> consensus.Groups:
    """The groups with positions in `answers` instead of ids, as `consensus` reads them."""
    place = {answer: index for index, answer in enumerate(answers)}
    return [[(place[answer], index) for answer, index in members] for members in groups or []]


def _settle(tasks: Mapping[int, Task], contents: Mapping[int, dict[int, Any]], reviews: Sequence[TaskReview]) -> None:
    """Resolves the reviewed tasks that are complete and unanimous."""
    found = []
    for review in reviews:
        task, answers = tasks[review.task_id], contents[review.task_id]
        if task.overlap is None or len(answers) < task.overlap:
            continue
        groups = groups_by_position(review.groups, list(answers))
        content = consensus.unanimous(task.project.kind, list(answers.values()), groups)
        if content is not None:
            found.append(resolution(task, Resolution.Source.UNANIMOUS, content, list(answers)))
    Resolution.objects.bulk_create(found, ignore_conflicts=True)


def rests_on(source: str, trace: Sequence[Mapping[str, Any]], answers: Collection[int]) -> bool:
    """Whether a resolution with this trace holds for these answers: a reviewer's decision does for any, and one without a person only for
    those behind it."""
    return source not in AUTOMATIC or not trace or sorted(trace[0]["answers"]) == sorted(answers)


def resolution(task: Task, source: str, content: dict[str, Any] | None, answers: Sequence[int]) -> Resolution:
    """A resolution without a person's decisions; the trace names the answers behind it."""
    return Resolution(
        task=task,
        project_id=task.project_id,
        source=source,
        content=content,
        trace=[{"action": source, "answers": list(answers)}],
        decided_at=timezone.now(),
    )
