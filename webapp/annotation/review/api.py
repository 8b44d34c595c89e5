"""Agreement and consolidation over the API. `publishing` has the exports."""

from datetime import datetime
from typing import Annotated, Any, Literal

from django.http import Http404, HttpRequest
from ninja import Path as InPath
from ninja import Query, Router, Schema, Status
from pydantic import AwareDatetime, Field

from webapp.accounts.access import require
from webapp.core.requests.openapi import StrictIn

from .. import access
from ..agreement import coefficients, matching, refresh
from ..agreement.confusion_matrices import published
from ..agreement.fields import cell, tasks_behind
from ..agreement.pseudonyms import comment as told
from ..agreement.pseudonyms import faces
from ..agreement.wins import wins
from ..models import Project, Task
from . import queries as review
from . import services, task_page

router = Router(tags=["annotation"])
Id = Annotated[int, InPath(ge=1, le=2**63 - 1)]
Text = Annotated[str, Field(max_length=4000)]
Opened = dict[str, Any]  # as `task_page` draws a task


class AgreementOut(Schema):
    """`computing`: newer answers are being counted; `report` is the last result, as of `computed_at`, or null."""

    state: Literal["ready", "computing"]
    computed_at: datetime | None
    started_at: datetime | None
    report: dict[str, Any] | None


class WinOut(Schema):
    """`rate`: the share of tasks in which `first` is preferred, with `low`, `high` (95%), `n` and `missing`."""

    first: str
    second: str
    rate: dict[str, Any]
    won: int
    tied: int
    lost: int


class WinList(Schema):
    """`items` is null if there are too many answers."""

    items: list[WinOut] | None


class ReviewRow(Schema):
    task: int
    example: str
    domain: str
    agreement: float | None
    answers: int
    source: str | None


class ReviewList(Schema):
    items: list[ReviewRow]
    next: str | None


class ReviewFilter(Schema):
    show: Literal["open", "resolved", "unresolved", "all"] = "open"
    cursor: str = Field("", max_length=60)
    limit: int = Field(50, ge=1, le=200)


class CellFilter(Schema):
    """`pair` names two people by their numbers, "1-2"; the values are those of the report's `values`."""

    field: str = Field(max_length=100)
    pair: str = Field(max_length=20)
    first: str = Field(max_length=80)
    second: str = Field(max_length=80)
    cursor: int = Field(0, ge=0, lt=2**63)
    limit: int = Field(50, ge=1, le=200)


class DecideIn(StrictIn):
    """`decisions`: row -> {"action": keep|merge|edit|drop|set, ...}; or the whole `content` in the subject's frame."""

    answers: list[int] = Field(
        max_length=100, description="The answers on which the decision is based, as you read them"
    )
    decisions: dict[str, dict[str, Any]] | None = None
    content: dict[str, Any] | None = None
    unresolved: bool = False
    why: str = Field("", max_length=500)


class GroupsIn(StrictIn):
    answers: list[int] = Field(max_length=100)
    groups: list[list[tuple[int, int]]] = Field(max_length=5000)


class MajorityIn(StrictIn):
    minimum: float = Field(0.0, ge=0, le=1, description="Least agreement of a task that is resolved by its majority")


class MajorityOut(Schema):
    resolved: int | None = Field(description="null if there are so many tasks that a job does it")


class WithdrawnOut(Schema):
    withdrawn: int


class MatchOut(Schema):
    started: bool = Field(description="false if nothing waits to be matched, or a job is at it")


class SentBackOut(Schema):
    assignment: int
    state: str
    sent_back: str


class CommentIn(StrictIn):
    kind: Literal["remark", "guidelines"] = "remark"
    text: Text


class SettleIn(StrictIn):
    settled: bool = True


class SendBackIn(StrictIn):
    words: str = Field(max_length=2000)


class CommentOut(Schema):
    """`by`: people who answer in the project under a pseudonym, others by their names."""

    id: int
    task_id: int
    kind: str
    text: str
    by: str
    created_at: datetime
    resolved_at: datetime | None


class CommentList(Schema):
    items: list[CommentOut]
    next: str | None = None


@router.get(
    "/projects/{int:project_id}/wins", response=WinList, summary="The models that people prefer, with intervals"
)
def model_wins(request: HttpRequest, project_id: Id) -> dict[str, Any]:
    """The project must be pairwise, and its responses must name their models. A tie counts half, and so does a pair of which both are
    bad."""
    found = wins(access.project_read(require(request), project_id))
    return {"items": found and [{**vars(win), "rate": win.rate.json()} for win in found]}


@router.get(
    "/projects/{int:project_id}/agreement", response=AgreementOut, summary="Agreement by field, domain and pair"
)
def get_agreement(request: HttpRequest, project_id: Id) -> dict[str, Any]:
    """Percent, Cohen, Fleiss, AC1 and Krippendorff's alpha, each with n and a 95% interval, or `undefined` with why."""
    project = access.project_read(require(request), project_id)
    report = refresh.current_report(project)
    matching.ask(project)
    return published(report, faces(project), coefficients.newest_answer(project))


@router.get(
    "/projects/{int:project_id}/agreement/tasks",
    response=ReviewList,
    summary="The tasks behind a confusion matrix's cell",
)
def list_cell(request: HttpRequest, project_id: Id, given: Query[CellFilter]) -> dict[str, Any]:
    """404 if the project has no such field, person or value."""
    project = access.project_read(require(request), project_id)
    values = (given.first.replace("\0", ""), given.second.replace("\0", ""))
    found = cell(project, faces(project), given.field, given.pair, values)
    if found is None:
        raise Http404("no such cell")
    ids = tasks_behind(project, found, given.cursor, given.limit + 1)
    following = str(ids[given.limit - 1]) if len(ids) > given.limit else None
    return {"items": _rows(project, ids[: given.limit]), "next": following}


@router.post(
    "/projects/{int:project_id}/agreement/match",
    response=MatchOut,
    summary="Match items by meaning again, after a failure",
)
def match(request: HttpRequest, project_id: Id) -> dict[str, bool]:
    return {"started": matching.ask(access.project_read(require(request), project_id), again=True)}


@router.get("/projects/{int:project_id}/review", response=ReviewList, summary="Complete tasks, least agreement first")
def list_review(request: HttpRequest, project_id: Id, given: Query[ReviewFilter]) -> dict[str, Any]:
    project = access.project_read(require(request), project_id)
    refresh.current_report(project)
    ids, following = review.least_agreement(project, given.show, given.cursor, given.limit)
    return {"items": _rows(project, ids), "next": following or None}


def _rows(project: Project, ids: list[int]) -> list[dict[str, Any]]:
    return [
        {
            "task": row.task.pk,
            "example": row.task.example.key,
            "domain": row.task.example.domain,
            "agreement": row.review and row.review.agreement,
            "answers": len(row.review.answers) if row.review else 0,
            "source": row.resolution and row.resolution.source,
        }
        for row in review.listed(project, ids)
    ]


@router.post(
    "/projects/{int:project_id}/review/majority",
    response=MajorityOut,
    summary="Accept all majorities",
)
def accept_majority(request: HttpRequest, project_id: Id, payload: MajorityIn) -> dict[str, Any]:
    membership = require(request)
    project = access.project_read(membership, project_id)
    return {"resolved": services.accept_majority(membership, project, payload.minimum)}


@router.delete(
    "/projects/{int:project_id}/review/majority", response=WithdrawnOut, summary="Undo all accepted majorities"
)
def withdraw_majority(request: HttpRequest, project_id: Id) -> dict[str, Any]:
    membership = require(request)
    return {"withdrawn": services.withdraw_majority(membership, access.project_read(membership, project_id))}


@router.get(
    "/projects/{int:project_id}/comments", response=CommentList, summary="Open remarks about the tasks of a project"
)
def list_comments(request: HttpRequest, project_id: Id, kind: Literal["", "remark", "guidelines"] = "") -> object:
    project = access.project_read(require(request), project_id)
    people = faces(project)
    return {"items": [told(row, people) for row in review.comments(project, kind)[:200]]}


@router.get("/tasks/{int:task_id}/review", response=Opened, summary="A task with its answers, remarks and decision")
def get_review(request: HttpRequest, task_id: Id) -> dict[str, Any]:
    task = access.task_read(require(request), task_id)
    refresh.review_tasks(task.project, [task.pk])
    return _shown(task)


def _shown(task: Task) -> dict[str, Any]:
    return task_page.task(review.task_in_review(task), faces(task.project))


@router.put("/tasks/{int:task_id}/resolution", response=Opened, summary="Decide the resolved judgement of a task")
def decide(request: HttpRequest, task_id: Id, payload: DecideIn) -> dict[str, Any]:
    """409 `answers_changed` if `answers` are no longer those that stand. The response has the task after the decision."""
    membership = require(request)
    task = access.task_read(membership, task_id)
    if payload.unresolved:
        services.leave_unresolved(membership, task, answers=payload.answers, why=payload.why)
    else:
        services.consolidate(
            membership, task, answers=payload.answers, decisions=payload.decisions, content=payload.content
        )
    return _shown(task)


@router.delete("/tasks/{int:task_id}/resolution", response=Opened, summary="Undo the last decision")
def undo(request: HttpRequest, task_id: Id, at: AwareDatetime | None = None) -> dict[str, Any]:
    """With `at`, only the decision with this `resolution.at`: 409 if another one holds now."""
    membership = require(request)
    task = access.task_read(membership, task_id)
    services.undo(membership, task, at)
    return _shown(task)


@router.put("/tasks/{int:task_id}/groups", response=Opened, summary="Say which items say the same")
def regroup(request: HttpRequest, task_id: Id, payload: GroupsIn) -> dict[str, Any]:
    membership = require(request)
    task = access.task_read(membership, task_id)
    services.regroup(membership, task, payload.groups, payload.answers)
    return _shown(task)


@router.post("/tasks/{int:task_id}/comments", response={201: CommentOut}, summary="Remark on a task")
def comment(request: HttpRequest, task_id: Id, payload: CommentIn) -> Status[dict[str, Any]]:
    membership = require(request)
    task = access.task_read(membership, task_id)
    made = services.comment(membership, task, payload.kind, payload.text)
    return Status(201, told(made, faces(task.project)))


@router.post(
    "/comments/{int:comment_id}/settle", response=CommentOut, summary="Mark a remark as resolved, or as open again"
)
def settle(request: HttpRequest, comment_id: Id, payload: SettleIn) -> dict[str, Any]:
    membership = require(request)
    row = services.settle_comment(membership, access.comment_read(membership, comment_id), payload.settled)
    return told(row, faces(row.project))


@router.post(
    "/assignments/{int:assignment_id}/send-back", response=SentBackOut, summary="Send an answer back to its author"
)
def send_back(request: HttpRequest, assignment_id: Id, payload: SendBackIn) -> dict[str, Any]:
    membership = require(request)
    row = services.send_back(membership, access.answered_read(membership, assignment_id), payload.words)
    return {"assignment": row.pk, "state": row.state, "sent_back": row.sent_back}
