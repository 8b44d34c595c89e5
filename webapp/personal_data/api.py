"""One's own data, as a file that a worker writes."""

from datetime import datetime
from typing import Literal

from django.http import HttpRequest
from django.http.response import HttpResponseBase
from ninja import Field, Router, Schema, Status

from webapp.accounts.access import require
from webapp.core.archive import respond
from webapp.core.openapi import sends
from webapp.core.paging import Limit, page

from . import access, queries, services
from .models import DataExport

router = Router(tags=["accounts"])


class DataExportOut(Schema):
    id: int
    state: Literal["queued", "running", "ready", "failed"]
    rows: int | None = Field(description="In all files of the zip")
    size: int | None = Field(description="Bytes")
    problem: str
    created_at: datetime
    finished_at: datetime | None
    expires_at: datetime = Field(description="The file is there until then")


class DataExportList(Schema):
    items: list[DataExportOut]
    next: str | None


@router.get("/me/data", response=DataExportList, summary="The files with your data that you asked for")
def exports(request: HttpRequest, cursor: str | None = None, limit: Limit = 50) -> object:
    return page(queries.mine(require(request).user), cursor, limit, "-id")


@router.post("/me/data", response={202: DataExportOut}, summary="Have all your data written into a file")
def ask(request: HttpRequest) -> Status[DataExport]:
    """A worker writes a zip of JSON Lines with an index of all that this installation holds about you, in all workspaces."""
    return Status(202, services.ask(require(request).user))


@router.get("/me/data/{int:export_id}", response=DataExportOut, summary="How far such a file is")
def export(request: HttpRequest, export_id: int) -> DataExport:
    return access.export(require(request).user, export_id)


@router.get(
    "/me/data/{int:export_id}/download",
    summary="The file with your data",
    openapi_extra=sends("application/octet-stream", ranges=True),
)
def download(request: HttpRequest, export_id: int) -> HttpResponseBase:
    """410 before it is ready and after it has ended."""
    return respond(request, services.fetch(access.export(require(request).user, export_id)))
