"""Share links over the API, for researchers and owners."""

from typing import Annotated

from django.http import HttpRequest
from ninja import Field, Path, Router, Status

from webapp.accounts.access import require
from webapp.core.database.paging import Limit, page

from .. import access as runs_access
from . import access, queries, services
from . import schemas as s

router = Router(tags=["runs"])
LinkId = Path[Annotated[int, Field(ge=1, lt=2**63)]]


@router.get(
    "/share-links", response=s.ShareLinkList, summary="Links that show comparisons and reports without an account"
)
def share_links(request: HttpRequest, cursor: str | None = None, limit: Limit = 50) -> object:
    """The links of the workspace that nobody has revoked, newest first."""
    found = page(queries.links(access.may_share(require(request)).workspace_id), cursor, limit)
    return {"items": s.links_json(found.items), "next": found.next}


@router.post("/share-links", response={201: s.ShareLinkMade}, summary="Share a comparison; its link is shown only now")
def share(request: HttpRequest, payload: s.ShareLinkIn) -> Status[object]:
    """People who have the link see the names of these runs and their experiments, the config fields that differ, and all metrics. 403 with
    `share_links_not_allowed` if no owner has allowed such links."""
    membership = access.may_share(require(request))
    runs = runs_access.runs_read(membership, list(dict.fromkeys(payload.runs)))
    link, secret = services.share(membership, runs, payload.name, payload.days, payload.baseline)
    return Status(201, s.told_made(link, secret))


@router.delete("/share-links/{int:link_id}", response={204: None}, summary="Revoke a share link")
def revoke(request: HttpRequest, link_id: LinkId) -> Status[None]:
    """The link stops at once. Anybody who may share may revoke it. Revoking it twice is not an error."""
    membership = access.may_share(require(request))
    services.revoke(membership, access.link_write(membership, link_id))
    return Status(204, None)
