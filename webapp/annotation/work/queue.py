"""Everything that an annotator does: claim, draft, submit, skip, reopen, flag. `seats` decides who has which task.

The rows themselves record who did what and when, so nothing here writes to the audit log. Refused work is never lost: content that can no
longer become an answer stays as the assignment's draft.
"""

from collections import defaultdict
from collections.abc import Sequence
from dataclasses import replace
from datetime import datetime, timedelta
from typing import Any, TypeVar

from django.db import connection, transaction
from django.db.models import Exists, OuterRef, QuerySet
from django.http import Http404
from django.utils import timezone

from webapp.accounts.models import Membership, User
from webapp.annotation import access, kinds
from webapp.annotation.models import Answer, Assignment, Comment, Participant, Project, Resolution
from webapp.core.database import prepared
from webapp.core.monitoring import telemetry
from webapp.core.problems import Conflict, Invalid
from webapp.core.tasks import AHEAD
from webapp.core.text.texts import one_line

from ..agreement.refresh import review_again
from ..tasks import seats
from ..tasks.seats import PersonPlace
from . import inbox, remarks, serving, submissions
from .after_submit import after_submit
from .serving import ServedTasks
from .submissions import MAX_SECONDS, Sent, Submission

State = Assignment.State
Row = TypeVar("Row")
MAX_DRAFT_BYTES = 1_000_000
# one statement, because it runs at every pause in typing
SAVE = """
    UPDATE annotation_assignment a
    SET draft = %(content)s, draft_revision = a.draft_revision + 1, draft_at = %(now)s,
        seconds = greatest(a.seconds, %(seconds)s),
        lease_until = greatest(a.lease_until,
            %(now)s + make_interval(mins => coalesce((p.settings ->> 'lease_minutes')::int, %(minutes)s)))
    FROM annotation_project p
    WHERE p.id = a.project_id AND p.workspace_id = %(workspace)s AND a.id = %(seat)s AND a.user_id = %(user)s
        AND a.draft_revision = %(revision)s AND a.state <> 'submitted'
    RETURNING a.draft_revision, a.state
"""
SHORTENED = """
    WITH longer AS (
        SELECT a.id, make_interval(mins => coalesce((p.settings ->> 'lease_minutes')::int, %(minutes)s)) AS lease
        FROM annotation_assignment a JOIN annotation_project p ON p.id = a.project_id
        WHERE a.state = 'claimed' AND a.sent_back = '' AND a.lease_until > %(now)s + make_interval(secs => %(ahead)s)
            + make_interval(mins => coalesce((p.settings ->> 'lease_minutes')::int, %(minutes)s))
            AND greatest(a.claimed_at, a.draft_at) > %(now)s + make_interval(secs => %(ahead)s)
        ORDER BY a.id FOR NO KEY UPDATE OF a SKIP LOCKED
    )
    UPDATE annotation_assignment a SET lease_until = %(now)s + longer.lease FROM longer WHERE a.id = longer.id
"""
SENT_BACK_DAYS = 30  # a returned answer waits for its author longer than a lease
EXPIRED_AT_ONCE = 500


def claim(membership: Membership, project: Project, hold: int = 1) -> list[Assignment]:
    """The person's open seats in serving order, filled up to `hold`; [] if nothing waits for them."""
    return serve(membership, project.pk, hold).items


def serve(membership: Membership, project_id: int, hold: int = 1) -> ServedTasks:
    """`claim`, with the data that the page shows around it. Raises Http404 for a project into which this person was not let.

    `left` is counted as on Home. That takes longer than the count near the end of the queue with which each submission answers.
    """
    with transaction.atomic():
        turn = serving.serve(_place(membership, project_id), hold)
    turn = _waited(membership, turn, hold)
    if not turn.items:
        return turn
    waiting = inbox.count_waiting(membership.user_id, project_id)
    unanswered = sum(seat.submitted_at is None for seat in turn.items)
    return replace(turn, left=None if waiting is None else max(0, waiting - unanswered))


def submit(
    membership: Membership,
    assignment: Assignment,
    content: dict[str, Any],
    revision: int | None = None,
    seconds: float = 0.0,
) -> Answer:
    """Makes `content` (shown frame) this person's answer; the same content sent again is the same answer.

    Raises Invalid at `content.*`; Conflict if it was submitted with other content, if a draft newer than `revision` is stored, or if the
    seat is gone: then the content is kept as the assignment's draft.
    """
    return submit_and_serve(membership, assignment.pk, Sent(content, revision, seconds), 0)[0].answer


def submit_and_serve(
    membership: Membership, assignment_id: int, sent: Sent, hold: int
) -> tuple[Submission, ServedTasks]:
    """`submit` and then `serve`, in one transaction unless it has to wait for a lock."""
    _check_size(sent.content)
    with transaction.atomic():
        place, seat = _seat(membership, assignment_id)
        outcome = submissions.accept(place, seat, sent)
        turn = serving.serve(place, hold if isinstance(outcome, Submission) else 0)
    if isinstance(outcome, Conflict):  # raised only now: the draft that it keeps had to be committed
        raise outcome
    telemetry.SUBMISSIONS.labels(place.project.kind).inc()
    stress = after_submit(outcome.assignment, outcome.answer, turn.settings)
    return replace(outcome, stress=stress), _waited(membership, turn, hold)


def save_draft(
    membership: Membership, assignment: Assignment, content: dict[str, Any], revision: int, seconds: float = 0.0
) -> int:
    """Keeps `content` as the draft if `revision` is the stored one; returns the new revision and renews the lease.

    Raises Conflict (409) with the stored draft otherwise: another tab has saved meanwhile. A repeat of the last save is not a conflict. A
    seat
    whose lease ran out is taken again if it is still free; the draft is kept in any case.
    """
    return save_draft_at(membership, assignment, content, revision, seconds)[0]


def save_draft_at(
    membership: Membership, assignment: Assignment, content: dict[str, Any], revision: int, seconds: float
) -> tuple[int, datetime]:
    """`save_draft`, with the time it was saved."""
    _check_size(content)
    now = timezone.now()
    if stored := _save_draft(membership, assignment.pk, content, revision, seconds, now):
        if stored[1] == State.RETURNED:
            renew(membership, assignment)
        return stored[0], now
    row = access.own_assignment(membership, assignment.pk)
    if row.state == State.SUBMITTED:
        raise submissions.already_submitted()
    if row.draft_revision == revision + 1 and row.draft == content and row.draft_at:
        return row.draft_revision, row.draft_at
    raise submissions.newer_draft(row)


def renew(membership: Membership, assignment: Assignment) -> Assignment:
    """The page is still open: all open seats of this person in the project stay theirs; a returned one is taken again if it is free."""
    with transaction.atomic():
        place, seat = _seat(membership, assignment.pk)
        until = place.lease(timezone.now())
        if seat.state == State.RETURNED and serving.may_finish(place) and seats.retake(seat):
            Assignment.objects.filter(id=seat.pk).update(state=State.CLAIMED)
            seat.state = State.CLAIMED
        mine = Assignment.objects.filter(project=place.project, user=membership.user, state=State.CLAIMED)
        mine.filter(lease_until__lt=until).update(lease_until=until)
        seat.lease_until = max(until, seat.lease_until)
    return seat


def skip(membership: Membership, assignment: Assignment, reason: str) -> None:
    """Frees the seat; this person is not asked again. Skipping a reopened answer withdraws it."""
    _skip(membership, assignment.pk, reason)


def skip_and_serve(membership: Membership, assignment_id: int, reason: str, hold: int) -> ServedTasks:
    with transaction.atomic():
        place = _skip(membership, assignment_id, reason)
        turn = serving.serve(place, hold)
    return _waited(membership, turn, hold)


@transaction.atomic
def _skip(membership: Membership, assignment_id: int, reason: str) -> PersonPlace:
    reason = one_line(reason, 500, "Say why this task is skipped.", "reason")
    place, seat = _seat(membership, assignment_id)
    if seat.state == State.SUBMITTED:
        raise submissions.already_submitted()
    if seat.state == State.CLAIMED:
        seats.count([(seat.task_id, -1, 0)])
    if seat.submitted_at:
        Answer.objects.filter(assignment_id=seat.pk, current=True).update(current=False)
        place.participant.submitted -= 1
        place.participant.save(update_fields=["submitted"])
        review_again(seat.project_id, [seat.task_id])
    Assignment.objects.filter(id=seat.pk).update(state=State.SKIPPED, skip_reason=reason, submitted_at=None)
    return place


@transaction.atomic
def reopen(membership: Membership, assignment: Assignment) -> Assignment:
    """Opens one of this person's last submissions again; the answer becomes the draft and stands until the next one.

    Raises Conflict if it is too old (`settings.reopen`) or a reviewer has resolved the task. Reopening twice is harmless.
    """
    place, seat = _seat(membership, assignment.pk)
    if seat.state == State.CLAIMED:
        return seat
    if seat.state != State.SUBMITTED or seat.submitted_at is None:
        raise Conflict("There is no answer to reopen.", "not_submitted")
    if not serving.may_finish(place):
        raise Conflict("This project is paused or closed.", "closed")
    later = Assignment.objects.filter(project=place.project, user=membership.user, submitted_at__gt=seat.submitted_at)
    if later[: place.settings.reopen].count() >= place.settings.reopen:
        raise Conflict(f"Only your last {place.settings.reopen} submissions can be reopened.", "too_late")
    # locks the task: a person who resolves it meanwhile did so before the read, or finds the answer gone
    seats.count([(seat.task_id, 0, -1)])
    if Resolution.objects.filter(Resolution.BY_A_PERSON, task_id=seat.task_id).exists():
        raise Conflict("A reviewer has decided this task, so its answers cannot change.", "settled")
    return _reopened(place, seat, place.lease(timezone.now()))


@transaction.atomic
def send_back(assignment: Assignment, words: str) -> Assignment:
    """A reviewer asks the author to check the answer again, with their `words`; the author gets it before anything else. A decision based
    on it no longer holds.

    The caller has checked the reviewer's role and writes the audit entry. Raises Conflict without an answer, and if its author cannot
    work in the project: the answer would be open, and not count, for as long as it waits.
    """
    found = seats.lock_seat(assignment.user_id, assignment.project.workspace_id, assignment.pk)
    if found is None or found[1].state != State.SUBMITTED:
        raise Conflict("There is no submitted answer to send back.", "not_submitted")
    place, seat = found
    if not serving.may_finish(place) or not Assignment.objects.filter(Exists(_members()), pk=seat.pk).exists():
        # it does not say why: who has left may be known, and then the pseudonym would be, too
        message = (
            "Its author cannot work in this project now, so nobody would look at it again. Decide the task yourself."
        )
        raise Conflict(message, "nobody_to_answer")
    seats.count([(seat.task_id, 0, -1)])
    Resolution.objects.filter(task_id=seat.task_id).delete()  # after the task is locked, as in a reviewer's decision
    Assignment.objects.filter(id=seat.pk).update(sent_back=words.strip()[:2000])
    seat.sent_back = words.strip()[:2000]
    return _reopened(place, seat, timezone.now() + timedelta(days=SENT_BACK_DAYS))


def _reopened(place: PersonPlace, seat: Assignment, lease: datetime) -> Assignment:
    answer = Answer.objects.get(assignment_id=seat.pk, current=True)
    seat.state, seat.lease_until = State.CLAIMED, lease
    seat.draft = kinds.to_shown(place.project.kind, answer.content, seat.task.subject, seat.order)
    seat.draft_revision, seat.draft_at = seat.draft_revision + 1, timezone.now()
    seat.guidelines = place.guidelines
    seat.save(update_fields=["state", "lease_until", "draft", "draft_revision", "draft_at", "guidelines"])
    return seat


@transaction.atomic
def release(user: User, project: Project) -> int:
    """Returns a person's open work to the queue, because they were paused or left. Returns the number of seats. Drafts stay."""
    # the same order of locks as everywhere: the person, their assignments, the tasks
    list(Participant.objects.select_for_update(no_key=True).filter(project=project, user=user))
    mine = Assignment.objects.filter(project=project, user=user, state=State.CLAIMED)
    rows = list(mine.select_for_update(no_key=True).order_by("id"))
    _give_up(rows)
    return len(rows)


def _give_up(rows: Sequence[Assignment]) -> None:
    seats.give_up(rows)
    standing: dict[int, list[int]] = defaultdict(list)
    for seat in rows:
        if seat.submitted_at:
            standing[seat.project_id].append(seat.task_id)
    for project, tasks in standing.items():
        review_again(project, tasks)


def flag(membership: Membership, assignment: Assignment, kind: str, text: str) -> Comment:
    """Adds a remark about the task, or a request to change the guidelines. Raises Invalid at `kind` or `text`."""
    return remarks.add(membership.user, access.own_assignment(membership, assignment.pk).task, kind, text)


def expire_leases() -> int:
    """Returns the seats whose lease has run out to the queue, and those of people who have left the workspace or whose account is closed.
    Returns their number. Rows that somebody works on right now are skipped."""
    _shorten_leases()
    claimed = Assignment.objects.filter(state=State.CLAIMED)
    return _expire(claimed.filter(lease_until__lt=timezone.now())) + _expire(claimed.exclude(Exists(_members())))


def _members() -> QuerySet[Membership]:
    """The membership by which the person of an assignment may work on it."""
    return Membership.objects.filter(
        user=OuterRef("user"), workspace=OuterRef("project__workspace"), user__is_active=True
    )


def _expire(late: QuerySet[Assignment]) -> int:
    total = 0
    while True:
        with transaction.atomic():
            rows = late.order_by("lease_until").select_for_update(skip_locked=True, no_key=True, of=("self",))
            found = list(rows[:EXPIRED_AT_ONCE])
            _give_up(found)
        total += len(found)
        if len(found) < EXPIRED_AT_ONCE:
            return total


def _shorten_leases() -> None:
    """After the clock went back, leases of seats that were taken or worked on in the future would be too long: they begin again. Other
    leases may be long because the project's lease was, and stay. Leases of answers that were sent back last a month, so some hours more
    make no difference."""
    with connection.cursor() as cursor:
        cursor.execute(
            SHORTENED,
            {"now": timezone.now(), "ahead": AHEAD.total_seconds(), "minutes": kinds.Settings().lease_minutes},
        )


def _place(membership: Membership, project_id: int) -> PersonPlace:
    """The locked place of this person; reviewers and above join with their first claim."""
    place = seats.lock_place(membership.user_id, membership.workspace_id, project_id)
    if place is None:
        project = access.project_work(membership, project_id)
        Participant.objects.get_or_create(project=project, user=membership.user)
        place = seats.lock_place(membership.user_id, membership.workspace_id, project_id)
    return _found(place)


def _seat(membership: Membership, assignment_id: int) -> tuple[PersonPlace, Assignment]:
    """The person's assignment and their place in its project, both locked. Raises Http404 for another person's."""
    found = seats.lock_seat(membership.user_id, membership.workspace_id, assignment_id)
    if found is None:  # 404, unless the person was taken out of the project: their begun work is still theirs
        row = access.own_assignment(membership, assignment_id)
        Participant.objects.get_or_create(project=row.project, user=membership.user, defaults={"paused": True})
        found = seats.lock_seat(membership.user_id, membership.workspace_id, assignment_id)
    return _found(found)


def _found(row: Row | None) -> Row:
    if row is None:
        raise Http404("no such assignment")
    return row


def _check_size(content: dict[str, Any]) -> None:
    if len(seats.as_json(content)) > MAX_DRAFT_BYTES:
        raise Invalid("The answer is too large.", {"content": f"has more than {MAX_DRAFT_BYTES:,} characters"})


def _save_draft(
    membership: Membership, assignment_id: int, content: dict[str, Any], revision: int, seconds: float, now: datetime
) -> tuple[int, str] | None:
    """(new revision, state), or None if there is no such seat with this revision."""
    values: dict[str, Any] = {
        "content": seats.as_json(content),
        "now": now,
        "seconds": min(max(seconds, 0.0), MAX_SECONDS),
        "minutes": kinds.Settings().lease_minutes,
        "workspace": membership.workspace_id,
        "seat": assignment_id,
        "user": membership.user_id,
        "revision": revision,
    }
    found = prepared.rows(SAVE, values)
    return (int(found[0][0]), str(found[0][1])) if found else None


def _waited(membership: Membership, turn: ServedTasks, hold: int) -> ServedTasks:
    if turn.reason != "none_left":
        return turn
    with transaction.atomic():
        return serving.serve_waiting(_place(membership, turn.project.pk), hold)
