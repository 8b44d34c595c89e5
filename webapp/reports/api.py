"""Reports over the API. Reading needs the role reviewer, writing researcher."""

from typing import Any

from django.http import HttpRequest
from ninja import Router, Status

from webapp.accounts.access import require
from webapp.core.paging import Limit, page
from webapp.core.problems import Invalid

from . import access, queries, services
from . import schemas as s
from .models import ReportPage, ReportPageVersion

router = Router(tags=["reports"])


@router.get("/reports", response=s.ReportPageList, summary="Reports, newest first")
def reports(
    request: HttpRequest, cursor: str | None = None, limit: Limit = 50, archived: bool = False
) -> dict[str, Any]:
    membership = access.may_read(require(request))
    found = page(queries.reports(membership.workspace_id, archived=archived), cursor, limit)
    return {"items": [s.told(row) for row in found.items], "next": found.next}


@router.post("/reports", response={201: s.ReportPageOut}, summary="Write a report")
def create_report(request: HttpRequest, payload: s.ReportPageIn) -> Status[dict[str, Any]]:
    """422 at `body` names the lines of blocks that cannot be read."""
    membership = access.may_write(require(request))
    about = services.about(membership, payload.experiment, payload.project)
    row = services.create(membership, payload.title, payload.body, **about)
    return Status(201, _whole(row, queries.newest(row)))


@router.get("/reports/{report_id}", response=s.ReportPageOut, summary="One report with its text")
def report(request: HttpRequest, report_id: s.Id) -> dict[str, Any]:
    row = access.report_read(require(request), report_id)
    return _whole(row, queries.newest(row))


@router.patch(
    "/reports/{report_id}", response=s.ReportPageOut, summary="Save a version of a report, archive or restore it"
)
def change_report(request: HttpRequest, report_id: s.Id, payload: s.ReportPageChange) -> dict[str, Any]:
    """A new title or text needs `base`, the version that you have read: 409 where another has been saved since, whose number is
    `newest` in the answer."""
    membership = require(request)
    row = access.report_write(membership, report_id)
    given = payload.model_dump(exclude_unset=True)
    if "title" in given or "body" in given:
        newest = queries.newest(row)
        if payload.base is None:
            raise Invalid("Which version have you read?", {"base": f"is needed; the newest is {newest.number}"})
        title = newest.title if payload.title is None else payload.title
        services.write(membership, row, payload.base, title, newest.body if payload.body is None else payload.body)
    if "experiment" in given or "project" in given:
        wanted = {"experiment": row.experiment_id, "project": row.project_id} | given
        services.place(membership, row, **services.about(membership, wanted["experiment"], wanted["project"]))
    if payload.archived is not None:
        (services.archive if payload.archived else services.unarchive)(membership, row)
    row = access.report_read(membership, report_id)
    return _whole(row, queries.newest(row))


def _whole(row: ReportPage, version: ReportPageVersion) -> dict[str, Any]:
    return {**s.told(row), "body": version.body, "saved_by": str(version.created_by) if version.created_by else None}
