"""Finds the tokens that a person may revoke."""

from django.http import Http404

from ..models import ApiToken, Membership, Role


def token_write(membership: Membership, token_id: int) -> ApiToken:
    """A token of the person in this workspace, or 404. Owners also reach the tokens of others."""
    tokens = ApiToken.objects.filter(workspace=membership.workspace, revoked_at=None)
    if not membership.may(Role.OWNER):
        tokens = tokens.filter(user=membership.user)
    found = tokens.filter(id=token_id).first()
    if found is None:
        raise Http404("no such token")
    return found
