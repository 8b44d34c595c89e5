"""Reads of the members of a workspace."""

from django.db.models import QuerySet

from ..models import Invite, Membership


def members(membership: Membership) -> QuerySet[Membership]:
    """Every member of the same workspace."""
    return Membership.objects.filter(workspace=membership.workspace).select_related("user", "workspace")


def open_invites(membership: Membership) -> QuerySet[Invite]:
    """Invitations that can still be accepted."""
    return Invite.objects.open().filter(workspace=membership.workspace).order_by("-id")
