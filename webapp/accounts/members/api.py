"""Members and invitations over the API."""

from datetime import datetime

from django.http import HttpRequest
from ninja import Field, Router, Schema, Status

from webapp.core.database.paging import Limit, page
from webapp.core.network.addresses import public_url
from webapp.core.requests.openapi import StrictIn

from ..access import require
from ..models import Membership, Role
from . import access, queries, services

router = Router(tags=["accounts"])


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


class RoleIn(StrictIn):
    role: str


class InviteIn(StrictIn):
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


@router.get("/members", response=MemberList, summary="The members of this workspace")
def members(request: HttpRequest, cursor: str | None = None, limit: Limit = 50) -> object:
    return page(queries.members(require(request, Role.REVIEWER)), cursor, limit, "id")


@router.post("/members/invite", response={201: InviteOut}, summary="Invite a member; the link works once")
def invite(request: HttpRequest, payload: InviteIn) -> Status[dict[str, str | None]]:
    """The invitation is for that address alone; opening it shows that the address belongs to the person. The newest invitation for an
    address counts."""
    secret = services.invite(require(request, Role.OWNER), payload.email, payload.role)
    return Status(201, {"url": f"{public_url()}/invite/{secret}" if secret else None})


@router.get("/members/invites", response=OpenInviteList, summary="Invitations that can still be accepted")
def invites(request: HttpRequest, cursor: str | None = None, limit: Limit = 50) -> object:
    return page(queries.open_invites(require(request, Role.OWNER)), cursor, limit, "-id")


@router.delete("/members/invites/{int:invite_id}", response={204: None}, summary="Revoke an invitation")
def revoke_invite(request: HttpRequest, invite_id: int) -> Status[None]:
    membership = require(request, Role.OWNER)
    services.revoke_invite(membership, access.invite_write(membership, invite_id))
    return Status(204, None)


@router.patch("/members/{int:member_id}", response=MemberOut, summary="Change a member's role")
def change_role(request: HttpRequest, member_id: int, payload: RoleIn) -> Membership:
    membership = require(request, Role.OWNER)
    other = access.member_write(membership, member_id)
    services.change_role(membership, other, payload.role)
    other.refresh_from_db()
    return other


@router.delete("/members/{int:member_id}", response={204: None}, summary="Remove a member")
def remove_member(request: HttpRequest, member_id: int) -> Status[None]:
    membership = require(request, Role.OWNER)
    services.remove_member(membership, access.member_write(membership, member_id))
    return Status(204, None)
