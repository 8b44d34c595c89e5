"""The group `share_links` of the API. Made by `python -m scripts.client` from the OpenAPI document of the server: do not edit."""

from __future__ import annotations

from collections.abc import Iterator
from typing import NotRequired, TypedDict

from ..calling import Group


class ShareLinkIn(TypedDict):
    runs: list[int]
    baseline: NotRequired[int | None]
    name: NotRequired[str]
    days: NotRequired[int | None]


class ShareLinkMade(TypedDict):
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
    url: str


class ShareLinkOut(TypedDict):
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


class ShareLinksRule(TypedDict):
    allowed: bool


class ShareLinks(Group):
    def rule(self) -> ShareLinksRule:
        """Whether the workspace allows share links."""
        return self._json(ShareLinksRule, "GET", "/share-links/allowed")

    def change_share_links_rule(self, body: ShareLinksRule) -> ShareLinksRule:
        """Allow or forbid share links. While this is false, no share link of the workspace opens. A change takes
        effect at once.
        """
        return self._json(ShareLinksRule, "PUT", "/share-links/allowed", body=body)

    def all(self, *, page_size: int | None = None) -> Iterator[ShareLinkOut]:
        """Links that show comparisons and reports without an account. The links of the workspace that nobody has
        revoked, newest first.
        """
        return self._pages(ShareLinkOut, "/share-links", query={"limit": page_size})

    def share(self, body: ShareLinkIn) -> ShareLinkMade:
        """Share a comparison; its link is shown only now. People who have the link see the names of these runs
        and their experiments, the config fields that differ, and all metrics. 403 with
        `share_links_not_allowed` if no owner has allowed such links.
        """
        return self._json(ShareLinkMade, "POST", "/share-links", body=body)

    def revoke(self, link_id: int) -> None:
        """Revoke a share link. The link stops at once. Anybody who may share may revoke it. Revoking it twice is
        not an error.
        """
        self._nothing("DELETE", f"/share-links/{link_id}")
