"""Exports of answers over the API: a page at a time, as a file, and as a version of the dataset."""

from collections.abc import AsyncIterator
from datetime import datetime
from typing import Annotated, Any, Literal

from asgiref.sync import sync_to_async
from django.http import HttpRequest, StreamingHttpResponse
from ninja import Path as InPath
from ninja import Query, Router, Schema, Status
from pydantic import Field

from webapp.accounts.access import require
from webapp.core.auditing import audit
from webapp.core.database.paging import Limit
from webapp.core.problems import Invalid
from webapp.core.requests.numbers import whole_number
from webapp.core.requests.openapi import StrictIn, sends
from webapp.core.requests.strict_query import OneOf
from webapp.datasets.ingest.uploads import safe_name

from .. import access
from ..agreement import refresh
from ..agreement.pseudonyms import Faces, faces
from ..models import Project, PublishedCase
from . import answers as queries
from . import queries as publications
from . import services as publish

router = Router(tags=["annotation"])
Id = Annotated[int, InPath(ge=1, le=2**63 - 1)]


class AnswerOut(Schema):
    """`content` names responses by their ids: swapped sides are turned back. `name` only if names were asked for."""

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
    seconds: float | None = Field(description="null: the time was not measured")
    suggestion: str = Field(description="never, before or after: when this person saw a model's view")
    suggested_by: str = Field(description="The source of the view: a judge's version, or the dataset")
    revision: int
    current: bool
    state: Literal["standing", "reopened", "superseded"]
    gold: bool
    gold_right: bool | None = Field(description="Also null while a rubric or rationale is not matched yet")
    gold_recall: float | None = Field(description="Share of the known criteria or reasons that it has")
    submitted_at: datetime
    shown_order: list[int]
    resolution: str | None


class AnswerList(Schema):
    items: list[AnswerOut]
    next: str | None


class AnswerFilter(Schema):
    revisions: bool = Field(False, description="Superseded revisions too")
    names: bool = Field(False, description="Give names beside the pseudonyms; not for reviewers")


class PublishIn(StrictIn):
    what: Literal["answers", "resolutions"] | None = Field(
        None,
        description="Every answer, or the resolved judgement of each task; `settings.publish` of the project if you do not say",
    )
    minimum: float = Field(0.0, ge=0, le=1, description="Least agreement of a task")
    sources: list[Literal["unanimous", "consolidated", "majority"]] = ["unanimous", "consolidated", "majority"]
    replace: bool = Field(True, description="Replace earlier labels of the annotated pairs")
    rest: bool = Field(True, description="Keep the examples that nobody annotated")
    base: int | None = Field(
        None, ge=1, le=2**31 - 1, description="The base version; the annotated version if none is named"
    )


class ReasonOut(Schema):
    reason: str
    label: str
    count: int
    cases: str


class LabelsOut(Schema):
    """The number of labels by their fate; `cases` is the address of these labels one by one."""

    fate: Literal["kept", "replaced", "imported", "dropped"]
    label: str
    count: int
    cases: str
    reasons: list[ReasonOut]


class PublishedOut(Schema):
    """`version` and `publication` are null while a job is working. `labels` counts those of the judged examples, `untouched` the
    preferences of all others, `left_out` those that are not in the version. `answers` counts people's answers behind the labels that are
    kept."""

    publication: int | None = None
    dataset: int
    version: int | None = None
    version_id: int | None = None
    digest: str | None = None
    counts: dict[str, int] = {}
    base: int = Field(description="The number of its base version")
    choice: dict[str, Any]
    labels: list[LabelsOut] = []
    answers: int | None = None
    untouched: int | None = None
    left_out: int | None = None


class PublishedList(Schema):
    items: list[PublishedOut]
    next: str | None


class PublishedCaseOut(Schema):
    """`whose`: `annotator-3@project-1`, `majority@project-1` or the like, or `imported:` and a name. `answers`: the number of answers of
    this project that it represents."""

    example: str
    task: int | None
    fate: str
    reason: str
    whose: str
    says: str
    answers: int


class PublishedCaseList(Schema):
    items: list[PublishedCaseOut]
    next: str | None


class CaseFilter(Schema):
    fate: Literal["", "kept", "replaced", "imported", "dropped"] = ""
    reason: Annotated[str, OneOf(("", *PublishedCase.Reason.values))] = ""
    cursor: int = Field(0, ge=0, lt=2**63)
    limit: int = Field(50, ge=1, le=200)


@router.get("/projects/{int:project_id}/answers", response=AnswerList, summary="The answers of a project, oldest first")
def list_answers(
    request: HttpRequest, project_id: Id, given: Query[AnswerFilter], cursor: str | None = None, limit: Limit = 50
) -> dict[str, Any]:
    membership = require(request)
    project = access.project_read(membership, project_id)
    after = whole_number(cursor) if cursor else 0
    if after is None:
        raise Invalid("This cursor does not belong to this list.", {"cursor": "take the cursor from `next`"})
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
    audit.record(membership, membership.user, "project.exported", project, format=format, names=bool(given.names))
    kind = "text/csv; charset=utf-8" if format == "csv" else "application/x-ndjson"
    moment = queries.at_this_moment(project, given.revisions)
    response = StreamingHttpResponse(_chunks(project, people, format, moment), content_type=kind)
    response["Content-Disposition"] = f'attachment; filename="{safe_name(project.name)}-answers.{format}"'
    return response


async def _chunks(project: Project, people: Faces, format: str, moment: queries.Moment) -> AsyncIterator[bytes]:
    read = queries.table_rows if format == "csv" else queries.lines
    if format == "csv":
        yield queries.table_head(project, people).encode()
    for part in moment.parts():
        text = await sync_to_async(read)(project, people, part)
        yield text.encode()


@router.post(
    "/projects/{int:project_id}/publish",
    response={201: PublishedOut, 202: PublishedOut},
    summary="Publish the answers as a frozen version of the dataset",
)
def publish_answers(request: HttpRequest, project_id: Id, payload: PublishIn) -> Status[dict[str, Any]]:
    """201 with the version and the fate of every label; 202 if there is so much that a job does it: then `publications` lists it."""
    membership = require(request)
    project = access.project_write(membership, project_id)
    refresh.current_report(project)
    what = payload.what or publish.usual(project).what
    choice = publish.Choice(**{**payload.model_dump(), "what": what, "sources": tuple(payload.sources)})
    made = publish.start(membership, project, choice)
    if made is None:
        number = choice.base or project.version.number
        return Status(202, {"dataset": project.version.dataset_id, "base": number, "choice": choice.told()})
    return Status(201, publications.publication_json(made))


@router.get(
    "/projects/{int:project_id}/publications",
    response=PublishedList,
    summary="Publications of a project, newest first",
)
def list_publications(
    request: HttpRequest, project_id: Id, cursor: str | None = None, limit: Limit = 50
) -> dict[str, Any]:
    project = access.project_read(require(request), project_id)
    before = whole_number(cursor) if cursor else None
    if cursor and before is None:
        raise Invalid("This cursor does not belong to this list.", {"cursor": "take the cursor from `next`"})
    rows = publications.publications(project).select_related("project__version")
    rows = rows.filter(pk__lt=before) if before else rows
    found = list(rows[: limit + 1])
    more = str(found[limit - 1].pk) if len(found) > limit else None
    return {"items": [publications.publication_json(made) for made in found[:limit]], "next": more}


@router.get(
    "/projects/{int:project_id}/publications/{int:publication_id}",
    response=PublishedOut,
    summary="One publication: its version and what became of every label",
)
def get_publication(request: HttpRequest, project_id: Id, publication_id: Id) -> dict[str, Any]:
    return publications.publication_json(access.publication_read(require(request), project_id, publication_id))


@router.get(
    "/projects/{int:project_id}/publications/{int:publication_id}/cases",
    response=PublishedCaseList,
    summary="The labels behind the counts of a publication",
)
def list_cases(request: HttpRequest, project_id: Id, publication_id: Id, given: Query[CaseFilter]) -> dict[str, Any]:
    made = access.publication_read(require(request), project_id, publication_id)
    found = publications.cases(made, given.fate, given.reason, given.cursor, given.limit + 1)
    more = str(found[given.limit - 1].pk) if len(found) > given.limit else None
    items = [{**vars(case), "task": case.task_id} for case in found[: given.limit]]
    return {"items": items, "next": more}
