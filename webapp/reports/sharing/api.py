"""Share links of a report over the API, for researchers and owners. Revoking is that of all links."""

from typing import Any

from django.http import HttpRequest
from ninja import Router, Status

from webapp.accounts.access import require
from webapp.core.database.paging import Limit, page
from webapp.experiments.sharing import queries as links
from webapp.experiments.sharing.schemas import links_json
from webapp.experiments.sharing.services import address

from .. import access
from .. import schemas as s
from ..models import SharedReport
from . import queries, services
from .access import shared_write

router = Router(tags=["reports"])


@router.get("/reports/{report_id}/share-links", response=s.ReportShareList, summary="Links that show this report")
def report_links(request: HttpRequest, report_id: s.Id, cursor: str | None = None, limit: Limit = 50) -> dict[str, Any]:
    """Links that nobody has revoked, newest first."""
    membership = require(request)
    found = page(queries.shared(access.report_write(membership, report_id)), cursor, limit)
    return {"items": _told(membership.workspace_id, found.items), "next": found.next}


@router.post(
    "/reports/{report_id}/share-links",
    response={201: s.ReportShareMade},
    summary="Share a report; its link is shown only now",
)
def share_report(request: HttpRequest, report_id: s.Id, payload: s.ReportShareIn) -> Status[dict[str, Any]]:
    """People who have the link see the newest version as it is now: its text, and its charts, tables and rollouts with the runs that they
    show now. 403 with `share_links_not_allowed` if no owner has allowed such links, 409 with `report_archived` if it is archived."""
    membership = require(request)
    link, secret = services.share(membership, access.report_write(membership, report_id), payload.name, payload.days)
    (row,) = _told(membership.workspace_id, [shared_write(membership, report_id, link.pk)])
    return Status(201, {**row, "url": address(secret)})


@router.post(
    "/reports/{report_id}/share-links/{link_id}/newest",
    response=s.ReportShareOut,
    summary="Let a link show the newest version of its report",
)
def share_newest(request: HttpRequest, report_id: s.Id, link_id: s.Id) -> dict[str, Any]:
    """The link then shows the runs that the newest version shows now. Until then a link keeps showing the version that was shared."""
    membership = require(request)
    services.show_newest(membership, shared_write(membership, report_id, link_id))
    (row,) = _told(membership.workspace_id, [shared_write(membership, report_id, link_id)])
    return row


def _told(workspace_id: int, rows: list[SharedReport]) -> list[dict[str, Any]]:
    held = links.links(workspace_id).filter(pk__in=[row.link_id for row in rows])
    by_id = {row["id"]: row for row in links_json(list(held))}
    return [{**by_id[row.link_id], "version": row.version.number} for row in rows if row.link_id in by_id]
