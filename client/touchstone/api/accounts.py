"""The group `accounts` of the API. Made by `python -m scripts.client` from the OpenAPI document of the server: do not edit."""

from __future__ import annotations

from collections.abc import Iterator
from typing import NotRequired, TypedDict

from ..calling import Group


class InviteIn(TypedDict):
    email: str
    role: NotRequired[str]


class InviteOut(TypedDict):
    url: str | None


class MeOut(TypedDict):
    id: int
    email: str
    name: str
    verified: bool
    role: str
    workspace: WorkspaceOut


class MemberOut(TypedDict):
    id: int
    email: str
    name: str
    verified: bool
    role: str
    created_at: str


class OpenInvite(TypedDict):
    id: int
    email: str
    role: str
    mailed: bool
    created_at: str
    expires_at: str


class OwnedToken(TypedDict):
    id: int
    name: str
    scope: str
    areas: dict[str, str]
    prefix: str
    created_at: str
    last_used_at: str | None
    last_used_from: str
    expires_at: str | None
    email: str


class RoleIn(TypedDict):
    role: str


class TimeOutsIn(TypedDict):
    idle_minutes: int | None
    session_minutes: int | None


class TimeOutsOut(TypedDict):
    """The time-outs of the workspace and of the installation. The strictest of a person's workspaces counts."""

    idle_minutes: int | None
    session_minutes: int | None
    installation_idle_minutes: int
    installation_session_minutes: int


class TokenCreated(TypedDict):
    id: int
    name: str
    scope: str
    areas: dict[str, str]
    prefix: str
    created_at: str
    last_used_at: str | None
    last_used_from: str
    expires_at: str | None
    secret: str


class TokenIn(TypedDict):
    """`scope` holds for all areas, unless `areas` names those that the token opens."""

    name: str
    scope: NotRequired[str]
    areas: NotRequired[dict[str, str] | None]
    days: NotRequired[int | None]


class TokenOut(TypedDict):
    id: int
    name: str
    scope: str
    areas: dict[str, str]
    prefix: str
    created_at: str
    last_used_at: str | None
    last_used_from: str
    expires_at: str | None


class WorkspaceEntry(TypedDict):
    workspace: WorkspaceOut
    role: str


class WorkspaceOut(TypedDict):
    id: int
    name: str
    slug: str


class Accounts(Group):
    def me(self) -> MeOut:
        """The person and the workspace of this token or session."""
        return self._json(MeOut, "GET", "/me")

    def workspaces(self, *, page_size: int | None = None) -> Iterator[WorkspaceEntry]:
        """The workspaces you belong to."""
        return self._pages(WorkspaceEntry, "/workspaces", query={"limit": page_size})

    def members(self, *, page_size: int | None = None) -> Iterator[MemberOut]:
        """The members of this workspace."""
        return self._pages(MemberOut, "/members", query={"limit": page_size})

    def invite(self, body: InviteIn) -> InviteOut:
        """Invite a member; the link works once. The invitation is for that address alone; opening it shows that
        the address belongs to the person. The newest invitation for an address counts.
        """
        return self._json(InviteOut, "POST", "/members/invite", body=body)

    def invites(self, *, page_size: int | None = None) -> Iterator[OpenInvite]:
        """Invitations that can still be accepted."""
        return self._pages(OpenInvite, "/members/invites", query={"limit": page_size})

    def revoke_invite(self, invite_id: int) -> None:
        """Revoke an invitation."""
        self._nothing("DELETE", f"/members/invites/{invite_id}")

    def change_role(self, member_id: int, body: RoleIn) -> MemberOut:
        """Change a member's role."""
        return self._json(MemberOut, "PATCH", f"/members/{member_id}", body=body)

    def remove_member(self, member_id: int) -> None:
        """Remove a member."""
        self._nothing("DELETE", f"/members/{member_id}")

    def tokens(self, *, page_size: int | None = None) -> Iterator[TokenOut]:
        """Your tokens for this workspace."""
        return self._pages(TokenOut, "/tokens", query={"limit": page_size})

    def create_token(self, body: TokenIn) -> TokenCreated:
        """Create a token; its secret is shown only now."""
        return self._json(TokenCreated, "POST", "/tokens", body=body)

    def all_tokens(self, *, page_size: int | None = None) -> Iterator[OwnedToken]:
        """Everybody's tokens for this workspace. Only owners may call this. They can revoke each token by
        `DELETE /tokens/{token_id}`.
        """
        return self._pages(OwnedToken, "/tokens/all", query={"limit": page_size})

    def revoke_token(self, token_id: int) -> None:
        """Revoke a token."""
        self._nothing("DELETE", f"/tokens/{token_id}")

    def time_outs(self) -> TimeOutsOut:
        """The time after which sessions end."""
        return self._json(TimeOutsOut, "GET", "/time-outs")

    def change_time_outs(self, body: TimeOutsIn) -> TimeOutsOut:
        """Change how long sessions last. The change takes effect at once: people who have been away for longer,
        or signed in earlier, must sign in again.
        """
        return self._json(TimeOutsOut, "PUT", "/time-outs", body=body)
