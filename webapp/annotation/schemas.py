"""Input and output of the API for projects."""

from datetime import date, datetime
from typing import Annotated, Any, Literal

from ninja import Path, Schema
from pydantic import Field

from webapp.core.requests.openapi import StrictIn
from webapp.core.requests.strict_query import OneOf
from webapp.datasets.api.references import DatasetRef

from .kinds import KINDS, Settings
from .models import MAX_OVERLAP

Id = Annotated[int, Field(ge=1, lt=2**63)]
ProjectId = Path[Id]
Number = Annotated[int, Field(ge=1, lt=2**31)]
KindName = Annotated[str, OneOf(tuple(KINDS))]
StrategyName = Literal["order", "random", "uncertainty", "disagreement"]
Overlap = Annotated[int, Field(ge=1, le=MAX_OVERLAP, description="Number of people who answer each task")]
Guidelines = Annotated[str, Field(max_length=100_000, description="Markdown")]


class ProjectIn(StrictIn):
    name: str = Field(min_length=1, max_length=120)
    kind: KindName
    dataset: DatasetRef
    overlap: Overlap = 2
    strategy: StrategyName = "order"
    settings: dict[str, Any] = Field(
        default_factory=dict, description="See `GET projects/kinds`; defaults where left out"
    )
    guidelines: Guidelines = ""
    open: bool = Field(False, description="Open it at once instead of leaving a draft")


class ProjectChange(StrictIn):
    """Absent fields stay as they are; settings are merged over the present ones."""

    name: str | None = Field(None, min_length=1, max_length=120)
    overlap: Overlap | None = None
    settings: dict[str, Any] | None = None


class StateIn(StrictIn):
    state: Literal["open", "paused", "closed"]


class SizeIn(StrictIn):
    kind: KindName
    dataset: DatasetRef
    overlap: Overlap = 2


class SizeOut(Schema):
    tasks: int
    answers: int
    examples: int
    exact: bool = Field(description="False: scaled up from a sample")


class ProjectProgressOut(Schema):
    """Gold tasks are counted separately: everybody may answer them, so they are never complete."""

    tasks: int
    complete: int
    in_work: int
    untouched: int
    seats: int
    seats_done: int
    gold: int
    fraction: float | None


class ProjectVersionOut(Schema):
    dataset_id: int
    dataset: str
    number: int
    digest: str


class ProjectOut(Schema):
    id: int
    name: str
    kind: str
    state: str
    version: ProjectVersionOut
    overlap: int
    strategy: str
    settings: Settings
    tasks_made: bool
    tasks_problem: str = Field(description="The reason why the tasks could not be made; it is tried again every minute")
    created_at: datetime
    progress: ProjectProgressOut
    people: int = Field(description="People who take part and are not paused")
    alpha: float | None = Field(description="Krippendorff's alpha, as last computed; see `GET projects/{id}/agreement`")


class ProjectList(Schema):
    items: list[ProjectOut]
    next: str | None


class KindOut(Schema):
    name: str
    title: str
    text: str
    needs: list[str] = Field(description="The data that a version must have")
    answer: dict[str, Any] = Field(description="JSON Schema of an answer")


class KindList(Schema):
    items: list[KindOut]
    settings: dict[str, Any] = Field(description="JSON Schema of a project's settings")
    next: str | None = None


class GuidelinesIn(StrictIn):
    text: Guidelines
    base: int | None = Field(
        None,
        ge=0,
        lt=2**31,
        description="The version from which it was written: 409 if there is a newer one; absent: not checked",
    )


class GuidelinesOut(Schema):
    number: int
    text: str
    author: str | None
    created_at: datetime
    answers: int = Field(description="Answers of people who saw this version")


class GuidelinesList(Schema):
    items: list[GuidelinesOut]
    next: str | None = None


class ParticipantIn(StrictIn):
    """A member of the workspace, by id or by address."""

    user: Id | None = None
    email: str | None = Field(None, max_length=254)


class PausedIn(StrictIn):
    paused: bool


class ShareOut(Schema):
    part: int
    whole: int
    value: float | None = Field(description="null if there is nothing to take a share of")


class FiguresOut(Schema):
    """`median_seconds` leaves out answers whose time was not measured; `agreement` is the plain share of equal answers
    among pairs with somebody else on the same task, not corrected for chance."""

    done: int
    median_seconds: float | None
    fast: ShareOut
    gold: ShareOut
    agreement: ShareOut


class PointOut(FiguresOut):
    at: date


class PersonOut(Schema):
    """`user`, `name` and `email` are null for reviewers, who see pseudonyms."""

    rater: str | None = Field(description="The pseudonym, as in answers and exports")
    user: int | None = None
    name: str | None = None
    email: str | None = None
    role: str | None = Field(description="null: has left the workspace")
    takes_part: bool
    paused: bool
    joined_at: datetime | None
    last_at: datetime | None
    skipped: int
    open: int
    total: FiguresOut
    points: list[PointOut] = Field(description="One point for each day; in a long project, for each week")
    warnings: list[str]


class PersonList(Schema):
    state: Literal["ready", "computing"] = Field(description="computing: newer answers are being counted")
    computed_at: datetime | None
    items: list[PersonOut]
    next: str | None = None


class ProjectInviteIn(StrictIn):
    uses: int = Field(1, ge=1, le=500, description="Number of people who may join by it")
    days: int = Field(7, ge=1, le=365)
    email: str | None = Field(None, max_length=254, description="The link is for this address alone and works once")


class ProjectInviteOut(Schema):
    id: int
    email: str = Field(description="Empty: for everybody who has the link")
    mailed: bool
    uses_left: int
    created_at: datetime
    expires_at: datetime


class NewInviteOut(ProjectInviteOut):
    link: str | None = Field(description="Shown now and never again; null: it was mailed")


class InviteList(Schema):
    items: list[ProjectInviteOut]
    next: str | None = None


class JoinIn(StrictIn):
    secret: str = Field(min_length=1, max_length=200, description="The last part of the link")


class JoinOut(Schema):
    project: int
    name: str
    workspace: str


class StatusOut(Schema):
    """`reason` says why `per_day` or `finish` is null."""

    progress: ProjectProgressOut
    open_now: int
    per_day: float | None
    finish: datetime | None
    reason: str
    throughput: list[dict[str, Any]] = Field(description='[{"at", "count"}] by hour for two days, then by day')
    warnings: list[str]


class TaskOut(Schema):
    id: int
    example: int
    key: str
    excerpt: str
    subject: dict[str, Any]
    state: str = Field(description="untouched, in_work, complete or gold")
    overlap: int | None = Field(description="null: gold, everybody may answer it")
    taken: int
    done: int
    gold: dict[str, Any] | None = Field(description="The known answer, in ids of responses")
    resolution: str | None
    skips: int
    remarks: int


class TaskList(Schema):
    items: list[TaskOut]
    next: str | None


class TaskAnswerOut(Schema):
    id: int
    revision: int
    content: dict[str, Any]
    seconds: float | None = Field(description="null: the time was not measured")
    guidelines: int | None
    suggestion: str
    suggested_by: str
    gold_right: bool | None = Field(description="Also null while a rubric or rationale is not matched yet")
    gold_detail: dict[str, Any] | None = Field(description='{"found": [index], "of", "recall", "least", "matcher"}')
    submitted_at: datetime


class SeatOut(Schema):
    """`user` and `name` only if names were asked for."""

    rater: str
    user: int | None = None
    name: str | None = None
    state: str
    claimed_at: datetime
    submitted_at: datetime | None
    seconds: float | None = Field(description="null: no time was measured so far")
    skip_reason: str
    sent_back: str
    answers: list[TaskAnswerOut] = Field(description="Newest revision first")


class TaskCommentOut(Schema):
    id: int
    kind: str
    text: str
    author: str | None
    created_at: datetime
    resolved_at: datetime | None


class TaskDetail(TaskOut):
    seats: list[SeatOut]
    comments: list[TaskCommentOut]


class GoldIn(StrictIn):
    content: dict[str, Any] | None = Field(description="The known answer in ids of responses; null: ordinary again")


class MarkIn(StrictIn):
    source: Literal["labels", "answers"]
    most: int = Field(20, ge=1, le=500)
    least: int = Field(1, ge=1, le=50, description="People who must agree")


class MarkOut(Schema):
    made: int
    looked: int


class JobOut(Schema):
    """Work over the whole project: `match`, `majority`, `publish` or `suggest`; the last of each."""

    kind: str
    state: str = Field(description="queued, running, finished or failed")
    done: int
    total: int | None
    result: dict[str, Any]
    problem: str
    created_at: datetime
    finished_at: datetime | None


class JobList(Schema):
    items: list[JobOut]
    next: str | None = None


class WaitingOut(Schema):
    """A project that you take part in; `free` is counted up to 1,000. `held` tasks are open, also those that were answered and are open again,
    which `done` counts."""

    project: int
    name: str
    kind: str
    state: str
    paused: bool
    done: int
    free: int
    held: int
    sent_back: int
    last_at: datetime | None


class WaitingList(Schema):
    items: list[WaitingOut]
    next: str | None = None
