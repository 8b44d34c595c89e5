"""Reads over people and workspaces."""

from django.db.models import QuerySet
from django.utils import timezone

from webapp.core.models import AuditEntry
from webapp.core.paging import Page, page

from .models import ApiToken, Invite, Membership, User


def members(membership: Membership) -> QuerySet[Membership]:
    """Everyone in the same workspace."""
    return Membership.objects.filter(workspace=membership.workspace).select_related("user", "workspace")


def my_memberships(user: User) -> QuerySet[Membership]:
    return Membership.objects.filter(user=user).select_related("user", "workspace").order_by("workspace__name", "id")


def my_tokens(membership: Membership) -> QuerySet[ApiToken]:
    """One's own live keys to this workspace, newest first."""
    return ApiToken.objects.filter(user=membership.user, workspace=membership.workspace, revoked_at=None).order_by(
        "-id"
    )


def open_invites(membership: Membership) -> QuerySet[Invite]:
    """Invitations that can still be accepted."""
    return Invite.objects.filter(
        workspace=membership.workspace, accepted_at=None, expires_at__gt=timezone.now()
    ).order_by("-id")


def audit_page(membership: Membership, cursor: str | None = None) -> Page[AuditEntry]:
    """The workspace's audit log, newest first, 50 entries a page."""
    entries = AuditEntry.objects.filter(workspace=membership.workspace).select_related("actor")
    return page(entries, cursor, 50, "-id")
