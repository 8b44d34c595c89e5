"""A reviewer's decisions: the resolution of a task, its source, and remarks.

Every decision names the answers behind it. If they have changed meanwhile, the decision is refused, so that nobody resolves a task by
answers that are outdated.
"""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from datetime import datetime
from typing import Any

from django.db import transaction
from django.utils import timezone

from webapp.accounts.models import Membership, User
from webapp.annotation import kinds
from webapp.annotation.agreement import consensus
from webapp.annotation.kinds.table import Undecided
from webapp.annotation.models import (
    AgreementReport,
    Answer,
    Assignment,
    Comment,
    Job,
    Project,
    Resolution,
    Task,
    TaskReview,
)
from webapp.annotation.review import consolidation, queries
from webapp.annotation.tasks import answer_checks, blinding
from webapp.core.auditing import audit
from webapp.core.problems import Conflict, Invalid
from webapp.core.text.texts import several_lines

from ..agreement.refresh import (
    STANDS,
    groups_by_position,
    resolution,
    rests_on,
    review_again,
    review_new,
    review_tasks,
)
from ..jobs import runner
from ..work import queue, remarks

AT_ONCE = 1_000  # tasks that a request resolves by majority; for more there is a job
BATCH = 500
BY_HAND = "a reviewer"
Source = Resolution.Source


@transaction.atomic
def consolidate(
    membership: Membership,
    task: Task,
    *,
    answers: Sequence[int],
    decisions: Mapping[str, Any] | None = None,
    content: Mapping[str, Any] | None = None,
) -> Resolution:
    """The new resolution of the task, made of `decisions` about its rows, or of `content` (subject's frame) as it is.

    Raises Conflict if `answers` are no longer those that stand; Invalid at `decisions.ROW` or `content.*`.
    """
    opened = queries.task_in_review(_locked(task))
    _same(opened, answers)
    if content is None:
        content, trace = _assembled(opened, decisions or {})
    else:
        trace = [{"action": "written"}]
    return _decide(membership, opened, Source.CONSOLIDATED, _sound(opened, content), trace)


@transaction.atomic
def leave_unresolved(membership: Membership, task: Task, *, answers: Sequence[int], why: str = "") -> Resolution:
    """Records that the reviewer could not decide either. Nothing is published for the task."""
    opened = queries.task_in_review(_locked(task))
    _same(opened, answers)
    return _decide(membership, opened, Source.UNRESOLVED, None, [{"action": "unresolved", "why": why.strip()[:500]}])


def _locked(task: Task) -> Task:
    """Locks the task, so that two reviewers take turns."""
    rows = Task.objects.select_related("project", "example").select_for_update(of=("self",), no_key=True)
    return rows.get(pk=task.pk)


def _same(opened: queries.Opened, answers: Sequence[int]) -> None:
    if sorted(answers) != sorted(each.id for each in opened.answers):
        raise Conflict("The answers have changed since the page was opened. Look at them again.", "answers_changed")
    if not opened.answers:
        raise Conflict("Nobody has answered this task.", "no_answers")


def _assembled(opened: queries.Opened, decisions: Mapping[str, Any]) -> tuple[dict[str, Any], list[dict[str, Any]]]:
    people = len(opened.answers)
    settled = {row.id: decision for row in opened.rows if (decision := consolidation.agreed(row, people))}
    wanted = {**settled, **decisions}
    try:
        return consolidation.assemble(opened.kind, opened.task.subject, opened.answered, opened.rows, wanted)
    except Undecided as problem:
        raise Invalid("Not every part is decided yet.", {f"decisions.{problem.row}": str(problem)}) from problem


def _sound(opened: queries.Opened, content: Mapping[str, Any]) -> dict[str, Any]:
    """The content, checked as an answer to this task. Raises Invalid at `content.*`."""
    task, order = opened.task, range(len(kinds.subject_sides(opened.task.subject)))
    view = blinding.view(opened.kind, opened.settings, task.subject, list(order), opened.example, done=True)
    try:
        letters = kinds.to_shown(opened.kind, dict(content), task.subject, list(order))
    except (ValueError, KeyError, TypeError, AttributeError) as error:
        raise Invalid("The answer does not fit this task.", {"content": str(error)}) from error
    # annotators may have to give reasons; a reviewer may find none of them right
    checked = answer_checks.answer(opened.kind, opened.settings, letters, view, gold=True)
    return kinds.to_subject(opened.kind, checked, task.subject, list(order))


def _decide(
    membership: Membership,
    opened: queries.Opened,
    source: str,
    content: dict[str, Any] | None,
    trace: list[dict[str, Any]],
) -> Resolution:
    task = opened.task
    head: dict[str, Any] = {"action": source, "answers": [each.id for each in opened.answers]}
    before = Resolution.objects.filter(task=task).first()
    if before:
        head["replaced"] = {
            "source": before.source,
            "content": before.content,
            "by": before.decided_by_id,
            "trace": [{name: part[name] for name in part if name != "replaced"} for part in before.trace],
        }
    found, _ = Resolution.objects.update_or_create(
        task=task,
        defaults={
            "project_id": task.project_id,
            "source": source,
            "content": content,
            "trace": [head, *trace],
            "decided_by": membership.user,
            "decided_at": timezone.now(),
        },
    )
    audit.record(membership, membership.user, "task.resolved", task, source=source)
    return found


def undo(membership: Membership, task: Task, at: datetime | None = None) -> Resolution | None:
    """Takes the last decision about a task back: the previous resolution holds again, or the one that follows from the answers, or
    none. Without a decision it does nothing. `at`: the time of the decision that the person saw; raises Conflict if another one holds now, so
    that two clicks, or two people, do not also take back an earlier decision."""
    if found := _taken_back(membership, task, at):
        return found
    review_tasks(task.project, [task.pk])  # after the commit, because it may lock people, who come before tasks
    return Resolution.objects.filter(task=task).first()


@transaction.atomic
def _taken_back(membership: Membership, task: Task, at: datetime | None) -> Resolution | None:
    task = _locked(task)
    found = Resolution.objects.filter(Resolution.BY_A_PERSON, task=task).first()
    if at is not None and (found is None or found.decided_at != at):
        raise Conflict(
            "This decision does not hold any more: it was undone, or replaced by another one.", "decided_since"
        )
    if found is None:
        return Resolution.objects.filter(task=task).first()
    before = found.trace[0].get("replaced") if found.trace else None
    audit.record(membership, membership.user, "task.reopened", task, source=found.source)
    if before and _still_holds(task, before):
        found.source, found.content, found.trace = before["source"], before["content"], before["trace"]
        found.decided_by, found.decided_at = User.objects.filter(pk=before["by"]).first(), timezone.now()
        found.save()
        return found
    found.delete()
    return None


def _still_holds(task: Task, replaced: Mapping[str, Any]) -> bool:
    """Whether a resolution that was replaced would stand today: one that followed from the answers ended if they have changed."""
    standing = Answer.objects.filter(STANDS, assignment__task=task).values_list("id", flat=True)
    return rests_on(replaced["source"], replaced["trace"], standing)


def accept_majority(membership: Membership, project: Project, minimum: float = 0.0) -> int | None:
    """Resolves every complete, undecided task with agreement `minimum` or more whose answers have a majority in every part.

    Returns the number of them, or None if there are so many tasks that a job does it. Tasks without a majority stay undecided. Raises
    Conflict while such a job is under way.
    """
    if not 0 <= minimum <= 1:
        raise Invalid("The least agreement is too small or too large.", {"minimum": "must be between 0 and 1"})
    review_new(project)
    if queries.undecided(project, singles=True)[: AT_ONCE + 1].count() > AT_ONCE:
        if runner.start(project, Job.Kind.MAJORITY, membership, minimum=minimum) is None:
            raise Conflict("The majorities of this project are already being accepted.", "accepting")
        return None
    done = sum(_majorities(membership, project, minimum))
    _accepted(membership, project, done, minimum)
    return done


@runner.does(Job.Kind.MAJORITY)
def carry_out_majority(job: Job, report: runner.Report) -> None:
    """The job of `accept_majority`: tasks that a lost worker resolved are resolved and counted, and not processed again."""
    assert job.membership is not None  # noqa: S101  `accept_majority` names one
    minimum, looked = job.params["minimum"], 0
    total = queries.undecided(job.project, singles=True).count()
    batches = _majorities(job.membership, job.project, minimum)
    while True:
        with transaction.atomic():  # the count is committed with the tasks that it counts
            if (done := next(batches, None)) is None:
                break
            job.result = {"resolved": job.result.get("resolved", 0) + done}
            runner.save(job, "result")
        looked += BATCH
        report.at(min(looked, total), total)
    _accepted(job.membership, job.project, job.result.get("resolved", 0), minimum)


def _accepted(membership: Membership, project: Project, done: int, minimum: float) -> None:
    audit.record(membership, membership.user, "project.majority_accepted", project, tasks=done, minimum=minimum)


def _majorities(membership: Membership, project: Project, minimum: float) -> Iterator[int]:
    """Yields the number of resolved tasks of each batch."""
    after = 0
    waiting = queries.undecided(project, singles=True).order_by("task_id")
    while reviews := list(waiting.filter(task_id__gt=after).select_related("task")[:BATCH]):
        after = reviews[-1].task_id
        chosen = [review for review in reviews if review.agreement is None or review.agreement >= minimum]
        yield _accept(membership, project, chosen)


def _accept(membership: Membership, project: Project, reviews: Iterable[TaskReview]) -> int:
    reviews = list(reviews)
    ids = [answer for review in reviews for answer in review.answers]
    contents = dict(Answer.objects.filter(STANDS, id__in=ids).values_list("id", "content"))
    found = []
    for review in reviews:
        if not all(answer in contents for answer in review.answers):
            continue
        given = [contents[answer] for answer in review.answers]
        content = consensus.majority(project.kind, given, groups_by_position(review.groups, review.answers))
        if content is not None:
            row = resolution(review.task, Source.MAJORITY, content, review.answers)
            row.decided_by = membership.user
            found.append(row)
    return len(Resolution.objects.bulk_create(found, ignore_conflicts=True))


def withdraw_majority(membership: Membership, project: Project) -> int:
    """Takes back all resolutions by majority; those tasks are undecided again. Conflict while more are being accepted."""
    if runner.open_one(project, Job.Kind.MAJORITY):
        raise Conflict("Majorities are being accepted. When that is done, you can undo all of them.", "accepting")
    done, _ = Resolution.objects.filter(project=project, source=Source.MAJORITY).delete()
    audit.record(membership, membership.user, "project.majority_withdrawn", project, tasks=done)
    return done


@transaction.atomic
def regroup(
    membership: Membership, task: Task, groups: Sequence[Sequence[Sequence[int]]], answers: Sequence[int]
) -> TaskReview:
    """Stores the reviewer's own matching of items. Raises Conflict as `consolidate`, Invalid at `groups`."""
    opened = queries.task_in_review(_locked(task))
    _same(opened, answers)
    wanted = {
        (each.id, index) for each in opened.answered for index in range(len(consensus.items(opened.kind, each.content)))
    }
    listed = [(int(answer), int(index)) for group in groups for answer, index in group]
    if sorted(listed) != sorted(wanted):
        raise Invalid(
            "The groups do not have every item exactly once.", {"groups": "must name each [answer, index] once"}
        )
    if any(len({answer for answer, _ in group}) != len(group) for group in groups):
        raise Invalid("A group has two items of one person.", {"groups": "must hold at most one item of an answer"})
    ours = sorted(sorted(list(map(int, item)) for item in group) for group in groups if group)
    contents = [each.content for each in opened.answered]
    ids = [each.id for each in opened.answered]
    TaskReview.objects.filter(task=task).update(
        groups=ours,
        matcher=BY_HAND,
        agreement=consensus.agreement(opened.kind, contents, groups_by_position(ours, ids)),
        updated_at=timezone.now(),
    )
    AgreementReport.objects.filter(project_id=task.project_id).update(through=-1)
    return TaskReview.objects.get(task=task)


@transaction.atomic
def comment(membership: Membership, task: Task, kind: str, text: str) -> Comment:
    """Adds a remark about the task, or a request to change the guidelines. Raises Invalid at `kind` or `text`."""
    return remarks.add(membership.user, task, kind, text)


def settle_comment(membership: Membership, row: Comment, settled: bool) -> Comment:
    """Marks a remark as dealt with, or opens it again."""
    row.resolved_at = timezone.now() if settled else None
    row.save(update_fields=["resolved_at"])
    return row


@transaction.atomic
def send_back(membership: Membership, assignment: Assignment, words: str) -> Assignment:
    """Gives an answer back to its author with what to check again. A decision based on it is taken back first.

    Raises Invalid at `words`; Conflict if no answer stands.
    """
    words = several_lines(words, 2000, "Say what should be looked at again.", "words")
    row = queue.send_back(assignment, words)
    audit.record(membership, membership.user, "answer.sent_back", assignment, words=words)
    review_again(assignment.project_id, [assignment.task_id])
    return row
