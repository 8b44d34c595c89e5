"""Reports over the API. Reading needs the role reviewer, writing researcher."""

from typing import Any

from django.http import HttpRequest, HttpResponse
from ninja import Router, Status

from webapp.accounts.access import require
from webapp.core.database.paging import Limit, page
from webapp.core.problems import Invalid
from webapp.core.requests.openapi import sends

from . import access, export, queries, services
from . import schemas as s
from .models import ReportPage, ReportPageVersion

router = Router(tags=["reports"])


@router.get("/reports", response=s.ReportPageList, summary="Reports, newest first")
def reports(
    request: HttpRequest, cursor: str | None = None, limit: Limit = 50, archived: bool = False
) -> dict[str, Any]:
    membership = access.may_read(require(request))
    found = page(queries.reports(membership.workspace_id, archived=archived), cursor, limit)
    return {"items": [s.page_json(row) for row in found.items], "next": found.next}


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
    """A new title or text needs `base`, the version that you have read: 409 if another has been saved since, whose number is
    `newest` in the answer."""
    membership = require(request)
    row = access.report_write(membership, report_id)
    given = payload.model_dump(exclude_unset=True)
    about = {}
    if "experiment" in given or "project" in given:
        wanted = {"experiment": row.experiment_id, "project": row.project_id} | given
        about = services.about(membership, wanted["experiment"], wanted["project"])
    if "title" in given or "body" in given:
        newest = queries.newest(row)
        if payload.base is None:
            raise Invalid(
                "The request does not say which version you read.",
                {"base": f"is needed; the newest is {newest.number}"},
            )
        title = newest.title if payload.title is None else payload.title
        services.write(membership, row, payload.base, title, newest.body if payload.body is None else payload.body)
    if about:
        services.place(membership, row, **about)
    if payload.archived is not None:
        (services.archive if payload.archived else services.unarchive)(membership, row)
    row = access.report_read(membership, report_id)
    return _whole(row, queries.newest(row))


@router.get("/reports/{report_id}/file", summary="A report as one HTML file", openapi_extra=sends("text/html"))
def report_file(request: HttpRequest, report_id: s.Id) -> HttpResponse:
    """The file has the values that you see now and charts as SVG. It has no script and fetches nothing."""
    membership = require(request)
    return export.as_html(membership, queries.newest(access.report_read(membership, report_id)))


@router.get("/reports/{report_id}/versions", response=s.ReportVersionList, summary="Versions of a report, newest first")
def versions(request: HttpRequest, report_id: s.Id, cursor: str | None = None, limit: Limit = 50) -> dict[str, Any]:
    row = access.report_read(require(request), report_id)
    found = page(queries.versions(row).order_by(), cursor, limit, "-number")
    return {"items": [s.told_version(each) for each in found.items], "next": found.next}


@router.get("/reports/{report_id}/versions/{number}", response=s.ReportVersionOut, summary="One version with its text")
def version(request: HttpRequest, report_id: s.Id, number: s.Number) -> dict[str, Any]:
    found = access.version_read(require(request), report_id, number)
    return {**s.told_version(found), "body": found.body}


@router.post(
    "/reports/{report_id}/versions/{number}/restore",
    response=s.ReportPageOut,
    summary="Restore an earlier version as the newest",
)
def restore_version(request: HttpRequest, report_id: s.Id, number: s.Number) -> dict[str, Any]:
    membership = require(request)
    access.report_write(membership, report_id)
    services.restore_version(membership, access.version_read(membership, report_id, number).report, number)
    row = access.report_read(membership, report_id)
    return _whole(row, queries.newest(row))


def _whole(row: ReportPage, version: ReportPageVersion) -> dict[str, Any]:
    return {
        **s.page_json(row),
        "body": version.body,
        "saved_by": str(version.created_by) if version.created_by else None,
    }
