"""One's own data, as a file that a worker writes: for people who are signed in, because it tells of all their workspaces."""

from datetime import datetime
from typing import Literal

from django.http import HttpRequest
from django.http.response import HttpResponseBase
from ninja import Field, Router, Schema, Status

from webapp.accounts.access import BY_HAND, by_hand
from webapp.accounts.models import User
from webapp.core.database.paging import Limit, page
from webapp.core.requests.openapi import sends
from webapp.core.storage.archive import respond

from . import access, queries, services
from .models import DataExport

router = Router(tags=["accounts"])


class DataExportOut(Schema):
    id: int
    state: Literal["queued", "running", "ready", "failed"]
    rows: int | None = Field(description="Number of rows in all files of the zip")
    size: int | None = Field(description="Bytes")
    problem: str
    created_at: datetime
    finished_at: datetime | None
    expires_at: datetime = Field(description="The file is there until then")


class DataExportList(Schema):
    items: list[DataExportOut]
    next: str | None


def _signed_in(request: HttpRequest) -> User:
    return by_hand(request, "take your data out", "data_by_token").user


@router.get(
    "/me/data",
    response=DataExportList,
    summary="The files with your data that you asked for",
    openapi_extra=BY_HAND,
)
def exports(request: HttpRequest, cursor: str | None = None, limit: Limit = 50) -> object:
    return page(queries.own_exports(_signed_in(request)), cursor, limit, "-id")


@router.post(
    "/me/data",
    response={202: DataExportOut},
    summary="Ask for a file with all your data",
    openapi_extra=BY_HAND,
)
def ask(request: HttpRequest) -> Status[DataExport]:
    """A worker writes a zip of JSON Lines with an index of all that this installation holds about you, in all workspaces.

    It takes the place of the file that you asked for before.
    """
    return Status(202, services.ask(_signed_in(request)))


@router.get(
    "/me/data/{int:export_id}", response=DataExportOut, summary="The progress of such a file", openapi_extra=BY_HAND
)
def export(request: HttpRequest, export_id: int) -> DataExport:
    return access.export(_signed_in(request), export_id)


@router.get(
    "/me/data/{int:export_id}/download",
    summary="The file with your data",
    openapi_extra={**sends("application/octet-stream", ranges=True), **BY_HAND},
)
def download(request: HttpRequest, export_id: int) -> HttpResponseBase:
    """410 before it is ready and after it has ended."""
    return respond(request, services.fetch(access.export(_signed_in(request), export_id)))
