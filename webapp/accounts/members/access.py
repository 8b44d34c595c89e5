"""Finds the memberships and invitations that a person may change."""

from django.core.exceptions import PermissionDenied
from django.http import Http404

from ..models import Invite, Membership, Role


def member_write(membership: Membership, member_id: int) -> Membership:
    """A membership of the same workspace, for an owner. Nobody else learns whether it exists."""
    if not membership.may(Role.OWNER):
        raise PermissionDenied("Only owners manage members.")
    found = Membership.objects.filter(workspace=membership.workspace, id=member_id).select_related("user").first()
    if found is None:
        raise Http404("no such member")
    return found


def invite_write(membership: Membership, invite_id: int) -> Invite:
    """An invitation into the same workspace that nobody has accepted, for an owner."""
    if not membership.may(Role.OWNER):
        raise PermissionDenied("Only owners manage invitations.")
    found = Invite.objects.filter(workspace=membership.workspace, accepted_at=None, id=invite_id).first()
    if found is None:
        raise Http404("no such invitation")
    return found
