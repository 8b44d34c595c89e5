"""Turns what a page sent into an answer that stands."""

from dataclasses import dataclass
from typing import Any

from django.db.models import Max
from django.utils import timezone

from webapp.annotation import kinds
from webapp.annotation.models import Answer, Assignment, Guidelines, Task
from webapp.annotation.tasks import answer_checks, blinding, gold_answers
from webapp.core.database import prepared
from webapp.core.problems import Conflict
from webapp.webhooks.queries import LISTENING
from webapp.webhooks.services import announce

from ..agreement.refresh import review_again
from ..tasks import seats
from ..tasks.seats import PersonPlace
from . import completion, serving

State = Assignment.State
MAX_SECONDS = 7 * 24 * 3600.0
FEW = 200
# the answer, its seat and its task in one statement: they change together, and it is one round trip
SUBMIT = f"""
    WITH seat AS (
        UPDATE annotation_assignment
        SET state = 'submitted', submitted_at = %(now)s, seconds = %(seconds)s, sent_back = '', skip_reason = '',
            draft = NULL, draft_at = NULL
        WHERE id = %(seat)s
    ), task AS (
        UPDATE annotation_task
        SET done = done + 1,
            completed_at = CASE WHEN done + 1 >= overlap THEN coalesce(completed_at, %(now)s) END
        WHERE id = %(task)s AND overlap IS NOT NULL
        RETURNING done = overlap AS completed
    ), person AS (
        UPDATE annotation_participant SET submitted = submitted + 1 WHERE id = %(participant)s AND %(first)s
    )
    INSERT INTO annotation_answer
        (assignment_id, project_id, revision, current, content, guidelines_id, suggestion, seconds, gold_right,
         submitted_at, suggested_by)
    VALUES (%(seat)s, %(project)s, %(revision)s, true, %(content)s, %(guidelines)s, %(suggestion)s, %(seconds)s,
            %(right)s, %(now)s, %(suggested_by)s)
    RETURNING id, (SELECT completed FROM task), {LISTENING},
        (SELECT count(*) < {FEW} FROM (
            SELECT 1 FROM annotation_task WHERE project_id = %(project)s AND open LIMIT {FEW}
        ) AS still_open)
"""  # noqa: S608  built from constants
TOLD = ["answer.submitted", "task.completed"]


@dataclass(frozen=True)
class Sent:
    """A submission as it arrived. `revision` is the draft that it changes, None to skip that check; `guidelines` is the number of the
    version on the screen, None for the one with which the assignment was served."""

    content: dict[str, Any]
    revision: int | None = None
    seconds: float = 0.0
    guidelines: int | None = None


@dataclass(frozen=True)
class Submission:
    """The result of a submission: `feedback` on a gold task, a model's view `after` it, the `stress` test of a rubric."""

    answer: Answer
    assignment: Assignment
    feedback: dict[str, Any] | None = None
    after: dict[str, Any] | None = None
    stress: dict[str, Any] | None = None


def accept(place: PersonPlace, seat: Assignment, sent: Sent) -> Submission | Conflict:
    """The answer, or the Conflict to raise once its draft is committed. Raises Invalid at `content.*`."""
    content = _checked(place, seat, sent.content)
    if seat.state == State.SUBMITTED:
        standing = _standing(seat)
        return _submission(place, seat, standing) if standing.content == content else already_submitted()
    if sent.revision is not None and sent.revision != seat.draft_revision and seat.draft != sent.content:
        return newer_draft(seat)
    if refusal := _refusal(place, seat):
        return _kept(seat, sent, refusal)
    if seat.submitted_at and (standing := _standing(seat)).content == content:
        _stand_again(seat, sent)
        return _submission(place, seat, standing)
    return _submission(place, seat, _write(place, seat, sent, content))


def already_submitted() -> Conflict:
    return Conflict("This was submitted already. Reopen it to change the answer.", "already_submitted")


def newer_draft(seat: Assignment) -> Conflict:
    """Another tab saved a newer draft; the caller gets it, to choose between the two."""
    message = "This task was changed in another window. Nothing is lost: choose which version to keep."
    return Conflict(message, current={"draft": seat.draft, "revision": seat.draft_revision})


def _checked(place: PersonPlace, seat: Assignment, content: dict[str, Any]) -> dict[str, Any]:
    """The answer as it is stored: complete, in the subject's frame."""
    kind, subject = place.project.kind, seat.task.subject
    view = blinding.view(kind, place.settings, subject, seat.order, seat.task.example.content, done=False)
    return kinds.to_subject(kind, answer_checks.answer(kind, place.settings, content, view), subject, seat.order)


def _standing(seat: Assignment) -> Answer:
    return Answer.objects.get(assignment_id=seat.pk, current=True)


def _stand_again(seat: Assignment, sent: Sent) -> None:
    """The answer was reopened and sent without changes: it stands again, without a new revision."""
    seats.count([(seat.task_id, 0, 1)])
    seat.state, seat.seconds, seat.sent_back, seat.draft = State.SUBMITTED, _seconds(seat, sent), "", None
    seat.save(update_fields=["state", "seconds", "sent_back", "draft"])
    review_again(seat.project_id, [seat.task_id])


def _refusal(place: PersonPlace, seat: Assignment) -> Conflict | None:
    """The reason why this cannot become an answer now. A returned seat is taken again if it is still free."""
    if not serving.may_finish(place):
        reason = serving.why_not(place)
        who = "You are paused in this project" if reason == "you_are_paused" else "This project is closed"
        return Conflict(f"{who}. Your answer is kept as a draft.", reason)
    if seat.state == State.CLAIMED or seats.retake(seat):
        return None
    message = "Your time for this task ran out and others have completed it. Your answer is kept as a draft."
    return Conflict(message, "seat_taken")


def _kept(seat: Assignment, sent: Sent, refusal: Conflict) -> Conflict:
    revision = seat.draft_revision + 1
    Assignment.objects.filter(id=seat.pk).update(
        draft=sent.content, draft_revision=revision, draft_at=timezone.now(), seconds=_seconds(seat, sent)
    )
    refusal.extra["current"] = {"draft": sent.content, "revision": revision}
    return refusal


def _seconds(seat: Assignment, sent: Sent) -> float:
    """The seconds spent. The page continues from the number it was given; a tab that counted less does not lower it."""
    return max(seat.seconds, min(max(sent.seconds, 0.0), MAX_SECONDS))


def _write(place: PersonPlace, seat: Assignment, sent: Sent, content: dict[str, Any]) -> Answer:
    now, revision, first = timezone.now(), 1, seat.submitted_at is None
    if seat.draft_revision or seat.submitted_at:  # a first answer without drafts, the common case, needs no query
        revision = 1 + (Answer.objects.filter(assignment_id=seat.pk).aggregate(last=Max("revision"))["last"] or 0)
    if not first:
        # the task's lock before the answers': gold answers are set in that order too
        list(place.project.tasks.select_for_update(no_key=True).filter(id=seat.task_id).values_list("id"))
        Answer.objects.filter(assignment_id=seat.pk, current=True).update(current=False)
    else:
        place.participant.submitted += 1
    suggested, suggested_by = _suggested(place, seat)
    answer = Answer(
        assignment=seat,
        project=place.project,
        revision=revision,
        content=content,
        guidelines=_guidelines(place, seat, sent.guidelines),
        suggestion=suggested,
        suggested_by=suggested_by,
        seconds=_seconds(seat, sent),
        gold_right=_right(place, seat, content),
        submitted_at=now,
    )
    answer.pk, completed, heard, nearly = _insert(answer, seat, place, first)
    if (completed is None) != (seat.task.overlap is None):
        _hold_against(answer, place, seat)
    if heard:
        _tell(place, seat, answer, completed)
    # looked at after every answer: if gold tasks were left out, their replies would come sooner and show what they are
    if nearly and completion.none_waits(place.project) and completed:
        completion.announce_complete(place.project)
    seat.state, seat.submitted_at, seat.seconds, seat.draft = State.SUBMITTED, now, answer.seconds, None
    return answer


def _tell(place: PersonPlace, seat: Assignment, answer: Answer, completed: bool | None) -> None:
    where = {"task": seat.task_id, "project": seat.project_id}
    told = {"answer": answer.pk, "revision": answer.revision, **where, "annotator": seat.user_id}
    announce(place.project.workspace_id, "answer.submitted", told)
    if completed:
        announce(place.project.workspace_id, "task.completed", where)


def _hold_against(answer: Answer, place: PersonPlace, seat: Assignment) -> None:
    """Marks the answer, because the task became a gold task, or stopped being one, after its seat was read."""
    seat.task.gold = Task.objects.values_list("gold", flat=True).get(pk=seat.task_id)
    answer.gold_right = _right(place, seat, answer.content)
    Answer.objects.filter(pk=answer.pk).update(gold_right=answer.gold_right)


def _insert(answer: Answer, seat: Assignment, place: PersonPlace, first: bool) -> tuple[int, bool | None, bool, bool]:
    """Inserts the answer. Returns its id; whether it was the last one for its task (None: a gold task waits for nobody); whether a webhook
    wants it; and whether so few tasks are open that it may be the last of the project, even if others answer right now."""
    values: dict[str, Any] = {
        "now": answer.submitted_at,
        "seconds": answer.seconds,
        "seat": seat.pk,
        "task": seat.task_id,
        "project": answer.project_id,
        "revision": answer.revision,
        "content": seats.as_json(answer.content),
        "guidelines": answer.guidelines_id,
        "suggestion": answer.suggestion,
        "suggested_by": answer.suggested_by,
        "right": answer.gold_right,
        "participant": place.participant.pk,
        "workspace": place.project.workspace_id,
        "events": TOLD,
        "first": first,
    }
    made, completed, heard, nearly = prepared.rows(SUBMIT, values)[0]
    return made, completed, heard, nearly


def _guidelines(place: PersonPlace, seat: Assignment, number: int | None) -> Guidelines | None:
    if number is None or (seat.guidelines and seat.guidelines.number == number):
        return seat.guidelines
    if place.guidelines and place.guidelines.number == number:
        return place.guidelines
    return Guidelines.objects.filter(project=place.project, number=number).first() or seat.guidelines


def _suggestion(place: PersonPlace, seat: Assignment) -> dict[str, Any] | None:
    if place.settings.suggestions == "never":
        return None
    offered = blinding.offered(seat, place.settings)
    return blinding.suggestion(place.project.kind, seat.task.subject, seat.order, seat.task.example.content, offered)


def _suggested(place: PersonPlace, seat: Assignment) -> tuple[str, str]:
    """Whether this person saw a model's view before or after answering, and the source of the view. A person who reopens an answer after
    seeing the view has seen it before the next answer."""
    if _suggestion(place, seat) is None:
        return "never", ""
    offered = blinding.offered(seat, place.settings)
    return "before" if seat.submitted_at else place.settings.suggestions, offered["by"] if offered else blinding.DATASET


def _right(place: PersonPlace, seat: Assignment, content: dict[str, Any]) -> bool | None:
    if seat.task.gold is None:
        return None
    return gold_answers.is_right(place.project.kind, place.settings, content, seat.task.gold)


def _submission(place: PersonPlace, seat: Assignment, answer: Answer) -> Submission:
    feedback = after = None
    if seat.task.gold is not None and place.settings.gold_feedback:
        expected = kinds.to_shown(place.project.kind, seat.task.gold, seat.task.subject, seat.order)
        feedback = {"right": answer.gold_right, "expected": expected}
    if place.settings.suggestions == "after" and (suggestion := _suggestion(place, seat)):
        after = {"suggestion": suggestion}
    return Submission(answer, seat, feedback, after)
