"""The person who asks, and the workspaces they belong to."""

from django.http import HttpRequest
from ninja import Field, Router, Schema

from webapp.core.database.paging import Limit, page
from webapp.core.requests.openapi import StrictIn

from ..access import require
from ..models import Role
from . import queries, services

router = Router(tags=["accounts"])


class WorkspaceOut(Schema):
    id: int
    name: str
    slug: str


class MeOut(Schema):
    id: int
    email: str
    name: str
    verified: bool
    role: str
    workspace: WorkspaceOut


class WorkspaceEntry(Schema):
    workspace: WorkspaceOut
    role: str


class WorkspaceList(Schema):
    items: list[WorkspaceEntry]
    next: str | None


class ShareLinksRule(StrictIn):
    allowed: bool = Field(
        description="Whether people of the workspace may share comparisons by links that need no account"
    )


@router.get("/me", response=MeOut, summary="The person and the workspace of this token or session")
def me(request: HttpRequest) -> dict[str, object]:
    membership = require(request)
    user = membership.user
    return {
        "id": user.pk,
        "email": user.email,
        "name": user.name,
        "verified": user.verified,
        "role": membership.role,
        "workspace": membership.workspace,
    }


@router.get("/workspaces", response=WorkspaceList, summary="The workspaces you belong to")
def workspaces(request: HttpRequest, cursor: str | None = None, limit: Limit = 50) -> object:
    membership = require(request)
    mine = queries.my_memberships(membership.user)
    if getattr(request, "api_token", None):  # a token opens one workspace and does not list others
        mine = mine.filter(workspace=membership.workspace)
    return page(mine, cursor, limit, "id")


@router.get("/share-links/allowed", response=ShareLinksRule, summary="Whether the workspace allows share links")
def share_links_rule(request: HttpRequest) -> dict[str, bool]:
    return {"allowed": require(request, Role.OWNER).workspace.allows_share_links}


@router.put("/share-links/allowed", response=ShareLinksRule, summary="Allow or forbid share links")
def change_share_links_rule(request: HttpRequest, payload: ShareLinksRule) -> dict[str, bool]:
    """While this is false, no share link of the workspace opens. A change takes effect at once."""
    workspace = services.allow_share_links(require(request, Role.OWNER), payload.allowed)
    return {"allowed": workspace.allows_share_links}
