"""Answers out: a page at a time, as a file, and as a version of the dataset."""

from collections.abc import AsyncIterator
from datetime import datetime
from typing import Annotated, Any, Literal

from asgiref.sync import sync_to_async
from django.http import HttpRequest, StreamingHttpResponse
from ninja import Path as InPath
from ninja import Query, Router, Schema, Status
from pydantic import Field

from webapp.accounts.access import require
from webapp.core.numbers import whole
from webapp.core.openapi import sends
from webapp.core.paging import Limit
from webapp.core.problems import Invalid
from webapp.datasets.services import safe_name

from .. import access
from ..models import Project
from ..queries import answers as queries
from ..queries.faces import Faces, faces
from ..services import publish, standing

router = Router(tags=["annotation"])
Id = Annotated[int, InPath(ge=1, le=2**63 - 1)]


class AnswerOut(Schema):
    """`content` names responses by their ids: what a person saw swapped is turned back. `name` only where it was
    asked for."""

    id: int
    task: int
    example: str
    domain: str
    kind: str
    rater: str
    name: str | None = None
    subject: dict[str, Any]
    content: dict[str, Any]
    guidelines: int | None
    seconds: float
    suggestion: str = Field(description="never, before or after: when this person saw a model's view")
    suggested_by: str = Field(description="Whose view: a judge's version, or the dataset")
    revision: int
    current: bool
    state: Literal["standing", "reopened", "superseded"]
    gold: bool
    gold_right: bool | None = Field(description="null too while a rubric or rationale waits to be matched")
    gold_recall: float | None = Field(description="Share of the known criteria or reasons that it has")
    submitted_at: datetime
    shown_order: list[int]
    resolution: str | None


class AnswerList(Schema):
    items: list[AnswerOut]
    next: str | None


class AnswerFilter(Schema):
    revisions: bool = Field(False, description="Superseded revisions too")
    names: bool = Field(False, description="Names beside the pseudonyms; not for reviewers")


class PublishIn(Schema):
    what: Literal["answers", "resolutions"] = "resolutions"
    minimum: float = Field(0.0, ge=0, le=1, description="Least agreement of a task")
    sources: list[Literal["unanimous", "consolidated", "majority"]] = ["unanimous", "consolidated", "majority"]
    replace: bool = Field(True, description="Earlier labels of the annotated pairs give way")
    rest: bool = Field(True, description="Keep the examples nobody annotated")


class PublishedOut(Schema):
    """`version` is null while a job is at it."""

    dataset: int
    version: int | None
    version_id: int | None
    digest: str | None
    counts: dict[str, int]


@router.get("/projects/{int:project_id}/answers", response=AnswerList, summary="Its answers, oldest first")
def list_answers(
    request: HttpRequest, project_id: Id, given: Query[AnswerFilter], cursor: str | None = None, limit: Limit = 50
) -> dict[str, Any]:
    membership = require(request)
    project = access.project_read(membership, project_id)
    after = whole(cursor) if cursor else 0
    if after is None:
        raise Invalid("The cursor is not one this list gave.", {"cursor": "take it from `next`"})
    people = faces(project, named=access.named(membership, given.names))
    found = queries.page(project, people, after, limit + 1, given.revisions)
    more = str(found[limit - 1]["id"]) if len(found) > limit else None
    return {"items": found[:limit], "next": more}


@router.get(
    "/projects/{int:project_id}/answers/export",
    summary="All answers as JSON Lines or CSV, streamed",
    openapi_extra=sends("application/x-ndjson", "text/csv"),
)
def export(
    request: HttpRequest, project_id: Id, given: Query[AnswerFilter], format: Literal["jsonl", "csv"] = "jsonl"
) -> StreamingHttpResponse:
    """Un-swapped, under pseudonyms. In CSV, text that a spreadsheet would run begins with an apostrophe."""
    membership = require(request)
    project = access.project_read(membership, project_id)
    people = faces(project, named=access.named(membership, given.names))
    kind = "text/csv; charset=utf-8" if format == "csv" else "application/x-ndjson"
    response = StreamingHttpResponse(_chunks(project, people, format, given.revisions), content_type=kind)
    response["Content-Disposition"] = f'attachment; filename="{safe_name(project.name)}-answers.{format}"'
    return response


async def _chunks(project: Project, people: Faces, format: str, revisions: bool) -> AsyncIterator[bytes]:
    read = queries.table_rows if format == "csv" else queries.lines
    if format == "csv":
        yield queries.table_head(project, people).encode()
    after: int | None = 0
    while after is not None:
        text, after = await sync_to_async(read)(project, people, after, revisions)
        yield text.encode()


@router.post(
    "/projects/{int:project_id}/publish",
    response={201: PublishedOut, 202: PublishedOut},
    summary="Make its answers a frozen version of the dataset",
)
def publish_answers(request: HttpRequest, project_id: Id, payload: PublishIn) -> Status[dict[str, Any]]:
    """201 with the version; 202 where there is so much that a job does it: then look at the dataset's versions."""
    membership = require(request)
    project = access.project_write(membership, project_id)
    standing.freshen(project)
    choice = publish.Choice(**{**payload.model_dump(), "sources": tuple(payload.sources)})
    version = publish.start(membership, project, choice)
    empty: dict[str, Any] = {
        "dataset": project.version.dataset_id,
        "version": None,
        "version_id": None,
        "digest": None,
        "counts": {},
    }
    if version is None:
        return Status(202, empty)
    made = {"version": version.number, "version_id": version.pk, "digest": version.digest, "counts": version.counts}
    return Status(201, {**empty, **made})
