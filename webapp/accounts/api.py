"""Me, my workspaces, its members, my tokens."""

from datetime import datetime

from django.http import HttpRequest
from ninja import Field, Router, Schema, Status

from webapp.core.addresses import public_url
from webapp.core.paging import Limit, page

from . import access, queries, services
from .areas import Area, Need, Right, check
from .models import ApiToken, Membership, Role

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


class MemberOut(Schema):
    id: int
    email: str
    name: str
    verified: bool = Field(description="Whether the address is verified")
    role: str
    created_at: datetime

    @staticmethod
    def resolve_verified(row: Membership) -> bool:
        return row.user.verified

    @staticmethod
    def resolve_email(row: Membership) -> str:
        return row.user.email

    @staticmethod
    def resolve_name(row: Membership) -> str:
        return row.user.name


class MemberList(Schema):
    items: list[MemberOut]
    next: str | None


class RoleIn(Schema):
    role: str


class InviteIn(Schema):
    email: str
    role: str = Role.ANNOTATOR.value


class InviteOut(Schema):
    url: str | None = Field(description="The link is shown only now; null: it was mailed to the address")


class OpenInvite(Schema):
    id: int
    email: str
    role: str
    mailed: bool
    created_at: datetime
    expires_at: datetime


class OpenInviteList(Schema):
    items: list[OpenInvite]
    next: str | None


class TokenIn(Schema):
    """`scope` counts in all areas, unless `areas` names those that the token opens."""

    name: str
    scope: str = "write"
    areas: dict[str, str] | None = Field(
        None, description=f"Such as `{{'datasets': 'read'}}`; of {', '.join(Area)}, each `read` or `write`"
    )
    days: int | None = services.TOKEN_DAYS  # until then it opens something; null: until it is revoked


class TokenOut(Schema):
    id: int
    name: str
    scope: str = Field(description="The highest right of the token in any area")
    areas: dict[str, str] = Field(description="The token cannot use areas that are not named here")
    prefix: str
    created_at: datetime
    last_used_at: datetime | None
    last_used_from: str = Field(description="Address; empty before the first use")
    expires_at: datetime | None


class TokenCreated(TokenOut):
    secret: str


class TokenList(Schema):
    items: list[TokenOut]
    next: str | None


class OwnedToken(TokenOut):
    email: str = Field(description="Whose it is")

    @staticmethod
    def resolve_email(row: ApiToken) -> str:
        return row.user.email


class OwnedTokenList(Schema):
    items: list[OwnedToken]
    next: str | None


@router.get("/me", response=MeOut, summary="Who this token or session is")
def me(request: HttpRequest) -> dict[str, object]:
    membership = access.require(request)
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
    membership = access.require(request)
    mine = queries.my_memberships(membership.user)
    if getattr(request, "api_token", None):  # a key opens one workspace and does not tell of others
        mine = mine.filter(workspace=membership.workspace)
    return page(mine, cursor, limit, "id")


@router.get("/members", response=MemberList, summary="Who belongs to this workspace")
def members(request: HttpRequest, cursor: str | None = None, limit: Limit = 50) -> object:
    return page(queries.members(access.require(request, Role.REVIEWER)), cursor, limit, "id")


@router.post("/members/invite", response={201: InviteOut}, summary="Invite someone; the link works once")
def invite(request: HttpRequest, payload: InviteIn) -> Status[dict[str, str | None]]:
    """It is for that address alone, and opening it shows that the address is theirs. The newest for an address counts."""
    secret = services.invite(access.require(request, Role.OWNER), payload.email, payload.role)
    return Status(201, {"url": f"{public_url()}/invite/{secret}" if secret else None})


@router.get("/members/invites", response=OpenInviteList, summary="Invitations that can still be accepted")
def invites(request: HttpRequest, cursor: str | None = None, limit: Limit = 50) -> object:
    return page(queries.open_invites(access.require(request, Role.OWNER)), cursor, limit, "-id")


@router.delete("/members/invites/{int:invite_id}", response={204: None}, summary="Revoke an invitation")
def revoke_invite(request: HttpRequest, invite_id: int) -> Status[None]:
    membership = access.require(request, Role.OWNER)
    services.revoke_invite(membership, access.invite_write(membership, invite_id))
    return Status(204, None)


@router.patch("/members/{int:member_id}", response=MemberOut, summary="Change a member's role")
def change_role(request: HttpRequest, member_id: int, payload: RoleIn) -> Membership:
    membership = access.require(request, Role.OWNER)
    other = access.member_write(membership, member_id)
    services.change_role(membership, other, payload.role)
    other.refresh_from_db()
    return other


@router.delete("/members/{int:member_id}", response={204: None}, summary="Remove a member")
def remove_member(request: HttpRequest, member_id: int) -> Status[None]:
    membership = access.require(request, Role.OWNER)
    services.remove_member(membership, access.member_write(membership, member_id))
    return Status(204, None)


@router.get("/tokens", response=TokenList, summary="Your tokens for this workspace")
def tokens(request: HttpRequest, cursor: str | None = None, limit: Limit = 50) -> object:
    return page(queries.my_tokens(access.require(request)), cursor, limit, "-id")


@router.get("/tokens/all", response=OwnedTokenList, summary="Everybody's tokens for this workspace")
def all_tokens(request: HttpRequest, cursor: str | None = None, limit: Limit = 50) -> object:
    """For owners, who revoke any of them by `DELETE /tokens/{token_id}`."""
    return page(queries.all_tokens(access.require(request, Role.OWNER)), cursor, limit, "-id")


@router.post(
    "/tokens",
    response={201: TokenCreated},
    summary="Make a token; its secret is shown only now",
    openapi_extra=access.BY_HAND,
)
def create_token(request: HttpRequest, payload: TokenIn) -> Status[object]:
    membership = access.by_hand(request, "make tokens", "token_by_token")
    token, secret = services.create_token(membership, payload.name, payload.scope, payload.days, payload.areas)
    shown = TokenOut.model_validate(token, from_attributes=True).model_dump()
    return Status(201, {**shown, "secret": secret})


@router.delete("/tokens/{int:token_id}", response={204: None}, summary="Revoke a token")
def revoke_token(request: HttpRequest, token_id: int) -> Status[None]:
    membership = access.require(request)
    row, key = access.token_write(membership, token_id), getattr(request, "api_token", None)
    if key and row.user_id != membership.user_id:
        check(key.areas, Need(Area.ADMINISTRATION, Right.WRITE))
    services.revoke_token(membership, row)
    return Status(204, None)
