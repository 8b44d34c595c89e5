"""The annotator's work over the API: claim, draft, submit, skip, reopen, flag.

Every response is built here, key by key, from what the person may see: letters instead of ids, no labels, no other answers, no names of
models. Responses with tasks are written directly as JSON, because people wait for them.
"""

from datetime import datetime
from typing import Annotated, Any

from django.http import Http404, HttpRequest, HttpResponse
from ninja import Path, Router, Schema, Status
from pydantic import Field

from webapp.accounts.access import require
from webapp.annotation import access, kinds
from webapp.annotation.models import Assignment
from webapp.annotation.tasks import blinding
from webapp.annotation.tasks.seats import as_json
from webapp.annotation.work import queries as work
from webapp.annotation.work import queue
from webapp.annotation.work.after_submit import stress_test_of
from webapp.annotation.work.serving import MAX_HOLD, ServedTasks
from webapp.annotation.work.submissions import MAX_SECONDS, Sent, Submission
from webapp.core.database.paging import Limit, page
from webapp.core.requests.limits import count_seconds
from webapp.core.requests.openapi import StrictIn

router = Router(tags=["annotation"])
Id = Path[Annotated[int, Field(ge=1, lt=2**63)]]
Hold = Annotated[int, Field(ge=0, le=MAX_HOLD)]
Seconds = Annotated[float, Field(ge=0, le=MAX_SECONDS, allow_inf_nan=False)]
Revision = Annotated[int, Field(ge=0, lt=2**31)]


class ClaimIn(StrictIn):
    hold: Hold = 1


class DraftIn(StrictIn):
    content: dict[str, Any]
    revision: Revision
    seconds: Seconds = 0.0


class SubmitIn(StrictIn):
    content: dict[str, Any]
    revision: Revision | None = None
    seconds: Seconds = 0.0
    guidelines: Revision | None = None
    hold: Hold = 1


class SkipIn(StrictIn):
    reason: str
    hold: Hold = 1


class FlagIn(StrictIn):
    kind: str = "remark"
    text: str


class AssignmentOut(Schema):
    """A task as its annotator sees it; answers and drafts name responses by the letters of `view.responses`. The number of the task in the
    project is left out: gold tasks are served out of order, so it would reveal them."""

    id: int
    project: int
    state: str
    lease_until: datetime
    draft: dict[str, Any] | None
    draft_revision: int
    draft_at: datetime | None
    seconds: float
    sent_back: str
    guidelines: int | None
    submitted_at: datetime | None
    gold: bool
    view: kinds.TaskView


class QueueOut(Schema):
    items: list[AssignmentOut]
    left: int | None
    done: int
    state: str
    reason: str
    guidelines: int | None = Field(description="The number of the guidelines in force; null if there are none")


class DraftOut(Schema):
    revision: int
    saved_at: datetime


class SubmittedOut(Schema):
    id: int
    revision: int


class SubmitOut(Schema):
    answer: SubmittedOut
    feedback: dict[str, Any] | None
    after: dict[str, Any] | None
    stress: dict[str, Any] | None
    queue: QueueOut


class SkipOut(Schema):
    queue: QueueOut


class FlagOut(Schema):
    id: int
    kind: str
    text: str
    created_at: datetime


class MineRow(Schema):
    id: int
    state: str
    submitted_at: datetime
    excerpt: str


class MineList(Schema):
    items: list[MineRow]
    next: str | None


class RenewOut(Schema):
    state: str
    lease_until: datetime


@router.post("/projects/{project_id}/claim", response=QueueOut, summary="Your open tasks, filled up from the queue")
def claim(request: HttpRequest, project_id: Id, payload: ClaimIn) -> HttpResponse:
    """Up to `hold` tasks, in serving order. Asking again gives the same ones. `reason` says why there is none: `none_left`, `paused`,
    `you_are_paused` or `closed`; `left`, the number of further tasks that you have not answered, is null for 1,000 or more; in the answer to
    a submission it is null for more than 50."""
    return _json(_queue(queue.serve(require(request), project_id, payload.hold)))


@router.get("/projects/{project_id}/mine", response=MineList, summary="Your last submissions, newest first")
def mine(request: HttpRequest, project_id: Id, cursor: str | None = None, limit: Limit = 50) -> dict[str, Any]:
    membership = require(request)
    project = access.project_work(membership, project_id)
    found = page(work.submissions(project, membership.user_id), cursor, limit, "-submitted_at")
    return {"items": [_submitted(row) for row in found.items], "next": found.next}


@router.get("/assignments/{assignment_id}", response=AssignmentOut, summary="One of your own tasks")
def assignment(request: HttpRequest, assignment_id: Id) -> HttpResponse:
    return _json(_assignment(access.own_assignment(require(request), assignment_id)))


@router.put("/assignments/{assignment_id}/draft", response=DraftOut, summary="Save a draft")
def draft(request: HttpRequest, assignment_id: Id, payload: DraftIn) -> HttpResponse:
    """`revision` is the revision that this draft changes; 409 with `current` if another window has saved meanwhile."""
    row = Assignment(id=assignment_id)
    revision, saved_at = queue.save_draft_at(require(request), row, payload.content, payload.revision, payload.seconds)
    return _json({"revision": revision, "saved_at": saved_at.isoformat()})


@router.post("/assignments/{assignment_id}/submit", response=SubmitOut, summary="Submit, and get the next task")
def submit(request: HttpRequest, assignment_id: Id, payload: SubmitIn) -> HttpResponse:
    """The same submission sent twice is one answer. 422 with the wrong fields below `content`; 409 `seat_taken` if the time for the task
    ran out and others completed it: the content is then kept as the draft."""
    sent = Sent(payload.content, payload.revision, payload.seconds, payload.guidelines)
    submission, turn = queue.submit_and_serve(require(request), assignment_id, sent, payload.hold)
    return _json({**_submission(submission), "queue": _queue(turn)})


@router.post("/assignments/{assignment_id}/skip", response=SkipOut, summary="Skip, and get the next task")
def skip(request: HttpRequest, assignment_id: Id, payload: SkipIn) -> HttpResponse:
    """The seat goes to another person; you are not asked again."""
    return _json({"queue": _queue(queue.skip_and_serve(require(request), assignment_id, payload.reason, payload.hold))})


@router.post("/assignments/{assignment_id}/reopen", response=AssignmentOut, summary="Reopen a submission")
def reopen(request: HttpRequest, assignment_id: Id) -> HttpResponse:
    """The answer becomes the draft, and stands until the next submission; `settings.reopen` says how many may be reopened."""
    return _json(_assignment(queue.reopen(require(request), Assignment(id=assignment_id))))


@router.post("/assignments/{assignment_id}/renew", response=RenewOut, summary="Renew the lease of your open tasks")
def renew(request: HttpRequest, assignment_id: Id) -> dict[str, Any]:
    """All your open tasks in the project stay yours for another lease. A page that stays open calls this."""
    row = queue.renew(require(request), Assignment(id=assignment_id))
    return {"state": row.state, "lease_until": row.lease_until}


@router.get(
    "/assignments/{assignment_id}/stress",
    response=dict[str, Any],
    summary="The stress test of a rubric that you submitted",
)
def stress_test(request: HttpRequest, assignment_id: Id) -> dict[str, Any]:
    """The stress test as the submission returned it, with the judge's verdicts since then; `judging` while the judge is being asked. 404 if
    there is no such test."""
    membership = require(request)
    seat = access.own_assignment(membership, assignment_id)
    with count_seconds(membership.user_id):
        found = stress_test_of(seat)
    if found is None:
        raise Http404("no stress test of this task")
    return found


@router.post("/assignments/{assignment_id}/flag", response={201: FlagOut}, summary="Remark on a task")
def flag(request: HttpRequest, assignment_id: Id, payload: FlagIn) -> Status[Any]:
    """`kind`: `remark`, or `guidelines` if they need an update."""
    return Status(201, queue.flag(require(request), Assignment(id=assignment_id), payload.kind, payload.text))


def assignment_out(row: Assignment, settings: kinds.Settings) -> dict[str, Any]:
    """An assignment as its annotator may see it; `row` has its project, `task.example` and `guidelines` in place."""
    done = row.submitted_at is not None
    kind, subject, content = row.project.kind, row.task.subject, row.task.example.content
    return {
        "id": row.pk,
        "project": row.project_id,
        "state": row.state,
        "lease_until": row.lease_until.isoformat(),
        "draft": row.draft,
        "draft_revision": row.draft_revision,
        "draft_at": row.draft_at and row.draft_at.isoformat(),
        "seconds": row.seconds,
        "sent_back": row.sent_back,
        "guidelines": row.guidelines and row.guidelines.number,
        "submitted_at": row.submitted_at and row.submitted_at.isoformat(),
        "gold": False,  # null for a gold task too: knowing it would change how carefully people answer
        "view": blinding.view(
            kind, settings, subject, row.order, content, done=done, offered=blinding.offered(row, settings)
        ),
    }


def _assignment(row: Assignment) -> dict[str, Any]:
    return assignment_out(row, kinds.Settings.model_validate(row.project.settings))


def _queue(turn: ServedTasks) -> dict[str, Any]:
    return {
        "items": [assignment_out(row, turn.settings) for row in turn.items],
        "left": turn.left,
        "done": turn.done,
        "state": turn.project.state,
        "reason": turn.reason,
        "guidelines": turn.guidelines,
    }


def _submission(found: Submission) -> dict[str, Any]:
    return {
        "answer": {"id": found.answer.pk, "revision": found.answer.revision},
        "feedback": found.feedback,
        "after": found.after,
        "stress": found.stress,
    }


def _submitted(row: Assignment) -> dict[str, Any]:
    excerpt = row.task.example.excerpt
    return {
        "id": row.pk, "state": row.state, "submitted_at": row.submitted_at, "excerpt": excerpt
    }  # fmt: skip


def _json(body: dict[str, Any]) -> HttpResponse:
    return HttpResponse(as_json(body), content_type="application/json; charset=utf-8")
