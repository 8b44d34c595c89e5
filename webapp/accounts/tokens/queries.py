"""Reads of tokens."""

from django.db.models import QuerySet

from ..models import ApiToken, Membership


def my_tokens(membership: Membership) -> QuerySet[ApiToken]:
    """One's own live keys to this workspace, newest first."""
    return ApiToken.objects.filter(user=membership.user, workspace=membership.workspace, revoked_at=None).order_by(
        "-id"
    )


def all_tokens(membership: Membership) -> QuerySet[ApiToken]:
    """Everybody's keys to this workspace that nobody has revoked, newest first; for owners."""
    rows = ApiToken.objects.filter(workspace=membership.workspace, revoked_at=None)
    return rows.select_related("user").order_by("-id")
