"""Jobs that need weights outside training: generating, scoring, measuring, embedding, exporting."""

from datetime import datetime
from typing import Annotated, Any, Literal

from django.http import HttpRequest
from ninja import Path, Query, Router, Schema, Status
from pydantic import ConfigDict, Field

from webapp.accounts.access import require
from webapp.core.background.priorities import Priority
from webapp.core.database.paging import Limit, page
from webapp.core.problems import Invalid
from webapp.core.requests.strict_query import OneOf
from webapp.datasets.models import DatasetVersion
from webapp.inference.models import RegisteredModel

from . import access, services
from .models import WeightsJob, WeightsLogLine, WeightsResult

router = Router(tags=["weights jobs"])
Id = Annotated[int, Path(ge=1, lt=2**63)]
RowId = Annotated[int, Field(ge=1, lt=2**63)]


class WeightsJobOut(Schema):
    id: int
    kind: str
    title: str
    params: dict[str, Any]
    state: str
    problem: str = Field(description="Why it ended or, of one that is queued, what it waits for")
    priority: str = Field(description="low, normal or high: among what the workspace has in the line")
    phase: str
    done: int
    total: int
    attempt: int
    outcome: dict[str, Any]
    used: dict[str, Any] = Field(
        description="Use of its machine so far: cpu_seconds, memory_bytes, gpu_bytes, device, processors"
    )
    model_id: int | None
    version_id: int | None
    created_at: datetime
    started_at: datetime | None
    ended_at: datetime | None

    @staticmethod
    def resolve_priority(job: WeightsJob) -> str:
        return Priority(job.priority).label.lower()


class JobPriorityIn(Schema):
    model_config = ConfigDict(extra="forbid", json_schema_extra={"example": {"priority": "high"}})

    priority: Literal["low", "normal", "high"]


class WeightsJobList(Schema):
    items: list[WeightsJobOut]
    next: str | None


class WeightsJobIn(Schema):
    """`generate`: a model answers the prompts of a dataset version. `score`: a reward model scores its responses. `logprobs`:
    how likely they are under a model. `embed`: vectors of its texts. `params.resources` is what Ray sets aside."""

    model_config = ConfigDict(
        extra="forbid",
        json_schema_extra={
            "example": {"kind": "generate", "model": 1, "dataset_version": 1, "params": {"max_new_tokens": 64}}
        },
    )

    kind: Literal["generate", "score", "logprobs", "embed"]
    model: RowId | None = Field(None, description="Not for `embed`")
    dataset_version: RowId
    params: dict[str, Any] = Field(default_factory=dict)


class WeightsResultOut(Schema):
    place: int
    content: dict[str, Any]


class WeightsResults(Schema):
    items: list[WeightsResultOut]
    next: int | None = Field(description="The `after` that continues, or null")


class WeightsLineOut(Schema):
    time: datetime
    level: str
    message: str


class WeightsLog(Schema):
    lines: list[WeightsLineOut]


@router.get("/weights-jobs", response=WeightsJobList, summary="Jobs, newest first")
def list_jobs(
    request: HttpRequest,
    cursor: str | None = None,
    limit: Limit = 50,
    kind: Annotated[str, OneOf(tuple(WeightsJob.Kind.values))] | None = None,
    state: Annotated[str, OneOf(tuple(WeightsJob.State.values))] | None = None,
) -> object:
    rows = WeightsJob.objects.filter(workspace_id=access.may_read(require(request)).workspace_id)
    rows = rows.filter(kind=kind) if kind else rows
    return page(rows.filter(state=state) if state else rows, cursor, limit)


@router.post(
    "/weights-jobs",
    response={201: WeightsJobOut},
    summary="Start a job that generates, scores, measures or embeds on the cluster",
)
def start_job(request: HttpRequest, payload: WeightsJobIn) -> Status[WeightsJob]:
    """The same question is not computed twice: the response has the same job."""
    membership = access.may_write(require(request))
    embeds = payload.kind == "embed"
    models = RegisteredModel.objects.filter(workspace=membership.workspace).select_related("base")
    model = models.filter(id=payload.model).first() if payload.model is not None else None
    version = (
        DatasetVersion.objects.filter(dataset__workspace=membership.workspace, id=payload.dataset_version)
        .select_related("dataset")
        .first()
    )
    missing = {"model": "this workspace has no such model"} if model is None and not embeds else {}
    missing |= {"model": "embeddings are made by the installed sentence model"} if embeds and payload.model else {}
    missing |= {"dataset_version": "this workspace has no such version"} if version is None else {}
    if version is None or missing:
        raise Invalid("The job cannot be started.", missing)
    if model is None:
        return Status(201, services.embed(membership.workspace, membership.user, version, payload.params))
    begin = {"generate": services.generate, "score": services.score, "logprobs": services.log_probs}[payload.kind]
    return Status(201, begin(membership.workspace, membership.user, model, version, payload.params))


@router.get("/weights-jobs/{job_id}", response=WeightsJobOut, summary="One job")
def get_job(request: HttpRequest, job_id: Id) -> WeightsJob:
    return access.job_read(require(request), job_id)


@router.post("/weights-jobs/{job_id}/stop", response=WeightsJobOut, summary="Stop a job; its results are kept")
def stop_job(request: HttpRequest, job_id: Id) -> WeightsJob:
    membership = require(request)
    return services.stop(access.job_write(membership, job_id), membership.user)


@router.post(
    "/weights-jobs/{job_id}/priority",
    response=WeightsJobOut,
    summary="Change the priority of a job",
)
def priority(request: HttpRequest, job_id: Id, payload: JobPriorityIn) -> WeightsJob:
    """The priority orders the workspace's work in the line. Work under way is not interrupted."""
    membership = require(request)
    job = access.job_write(membership, job_id)
    return services.prioritise(job, membership.user, Priority[payload.priority.upper()])


@router.post("/weights-jobs/{job_id}/retry", response=WeightsJobOut, summary="Try a job again, after its last result")
def retry_job(request: HttpRequest, job_id: Id) -> WeightsJob:
    """409 unless the job stopped or failed."""
    membership = require(request)
    return services.retry(access.job_write(membership, job_id), membership.user)


@router.get("/weights-jobs/{job_id}/results", response=WeightsResults, summary="Results, item by item")
def results(
    request: HttpRequest,
    job_id: Id,
    after: Annotated[int | None, Query(ge=0, lt=2**31)] = None,
    limit: Annotated[int, Query(ge=1, le=500)] = 100,
) -> dict[str, Any]:
    rows = WeightsResult.objects.filter(job=access.job_read(require(request), job_id)).order_by("place")
    found = list((rows if after is None else rows.filter(place__gt=after))[: limit + 1])
    return {"items": found[:limit], "next": found[limit - 1].place if len(found) > limit else None}


@router.get("/weights-jobs/{job_id}/log", response=WeightsLog, summary="The newest lines of the log, oldest first")
def log(request: HttpRequest, job_id: Id) -> dict[str, Any]:
    rows = WeightsLogLine.objects.filter(job=access.job_read(require(request), job_id)).order_by("-id")[:500]
    return {"lines": list(reversed(rows))}
