"""Reads of tokens."""

from django.db.models import QuerySet

from ..models import ApiToken, Membership


def my_tokens(membership: Membership) -> QuerySet[ApiToken]:
    """The person's live tokens for this workspace, newest first."""
    return ApiToken.objects.filter(user=membership.user, workspace=membership.workspace, revoked_at=None).order_by(
        "-id"
    )


def all_tokens(membership: Membership) -> QuerySet[ApiToken]:
    """The tokens of all people for this workspace that nobody has revoked, newest first; for owners."""
    rows = ApiToken.objects.filter(workspace=membership.workspace, revoked_at=None)
    return rows.select_related("user").order_by("-id")
