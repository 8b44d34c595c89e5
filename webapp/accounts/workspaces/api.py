"""Who asks, and the workspaces they belong to."""

from django.http import HttpRequest
from ninja import Router, Schema

from webapp.core.paging import Limit, page

from ..access import require
from . import queries

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


@router.get("/me", response=MeOut, summary="Who this token or session is")
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
    if getattr(request, "api_token", None):  # a key opens one workspace and does not tell of others
        mine = mine.filter(workspace=membership.workspace)
    return page(mine, cursor, limit, "id")
