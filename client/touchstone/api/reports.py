"""The group `reports` of the API. Made by `python -m scripts.client` from the OpenAPI document of the server: do not edit."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import NotRequired, TypedDict

from ..calling import Group
from .shared import Named


class ReportPageBrief(TypedDict):
    id: int
    title: str
    version: int
    experiment: Named | None
    project: Named | None
    created_at: str
    saved_at: str
    archived_at: str | None


class ReportPageChange(TypedDict):
    """Absent fields stay as they are."""

    base: NotRequired[int | None]
    title: NotRequired[str | None]
    body: NotRequired[str | None]
    experiment: NotRequired[int | None]
    project: NotRequired[int | None]
    archived: NotRequired[bool | None]


class ReportPageIn(TypedDict):
    title: str
    body: NotRequired[str]
    experiment: NotRequired[int | None]
    project: NotRequired[int | None]


class ReportPageOut(TypedDict):
    id: int
    title: str
    version: int
    experiment: Named | None
    project: Named | None
    created_at: str
    saved_at: str
    archived_at: str | None
    body: str
    saved_by: str | None


class ReportShareIn(TypedDict):
    name: NotRequired[str]
    days: NotRequired[int | None]


class ReportShareMade(TypedDict):
    id: int
    name: str
    created_by: str
    created_at: str
    first_opened_at: str | None
    last_opened_at: str | None
    expires_at: str | None
    run_count: int
    shows: str
    page: str | None
    version: int
    url: str


class ReportShareOut(TypedDict):
    id: int
    name: str
    created_by: str
    created_at: str
    first_opened_at: str | None
    last_opened_at: str | None
    expires_at: str | None
    run_count: int
    shows: str
    page: str | None
    version: int


class ReportVersionBrief(TypedDict):
    number: int
    title: str
    restored_from: int | None
    saved_by: str | None
    saved_at: str


class ReportVersionOut(TypedDict):
    number: int
    title: str
    restored_from: int | None
    saved_by: str | None
    saved_at: str
    body: str


class Reports(Group):
    def all(self, *, page_size: int | None = None, archived: bool | None = None) -> Iterator[ReportPageBrief]:
        """Reports, newest first."""
        return self._pages(ReportPageBrief, "/reports", query={"limit": page_size, "archived": archived})

    def create(self, body: ReportPageIn) -> ReportPageOut:
        """Write a report. 422 at `body` names the lines of blocks that cannot be read."""
        return self._json(ReportPageOut, "POST", "/reports", body=body)

    def get(self, report_id: int) -> ReportPageOut:
        """One report with its text."""
        return self._json(ReportPageOut, "GET", f"/reports/{report_id}")

    def change(self, report_id: int, body: ReportPageChange) -> ReportPageOut:
        """Save a version of a report, archive or restore it. A new title or text needs `base`, the version that
        you have read: 409 if another has been saved since, whose number is `newest` in the answer.
        """
        return self._json(ReportPageOut, "PATCH", f"/reports/{report_id}", body=body)

    def file(self, report_id: int, to: Path) -> Path:
        """A report as one HTML file. The file has the values that you see now and charts as SVG. It has no
        script and fetches nothing.
        """
        return self._file(to, f"/reports/{report_id}/file")

    def versions(self, report_id: int, *, page_size: int | None = None) -> Iterator[ReportVersionBrief]:
        """Versions of a report, newest first."""
        return self._pages(ReportVersionBrief, f"/reports/{report_id}/versions", query={"limit": page_size})

    def version(self, report_id: int, number: int) -> ReportVersionOut:
        """One version with its text."""
        return self._json(ReportVersionOut, "GET", f"/reports/{report_id}/versions/{number}")

    def restore_version(self, report_id: int, number: int) -> ReportPageOut:
        """Restore an earlier version as the newest."""
        return self._json(ReportPageOut, "POST", f"/reports/{report_id}/versions/{number}/restore")

    def links(self, report_id: int, *, page_size: int | None = None) -> Iterator[ReportShareOut]:
        """Links that show this report. Links that nobody has revoked, newest first."""
        return self._pages(ReportShareOut, f"/reports/{report_id}/share-links", query={"limit": page_size})

    def share(self, report_id: int, body: ReportShareIn) -> ReportShareMade:
        """Share a report; its link is shown only now. People who have the link see the newest version as it is
        now: its text, and its charts, tables and rollouts with the runs that they show now. 403 with
        `share_links_not_allowed` if no owner has allowed such links, 409 with `report_archived` if it is
        archived.
        """
        return self._json(ReportShareMade, "POST", f"/reports/{report_id}/share-links", body=body)

    def share_newest(self, report_id: int, link_id: int) -> ReportShareOut:
        """Let a link show the newest version of its report. The link then shows the runs that the newest version
        shows now. Until then a link keeps showing the version that was shared.
        """
        return self._json(ReportShareOut, "POST", f"/reports/{report_id}/share-links/{link_id}/newest")
