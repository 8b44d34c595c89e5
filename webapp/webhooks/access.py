"""Permissions of webhooks: they send events of a workspace outside, so only its owners see or change them."""

from django.core.exceptions import PermissionDenied
from django.http import Http404

from webapp.accounts.models import Membership, Role

from .models import Delivery, Webhook

OWNER = Role.OWNER


def hook_write(membership: Membership, hook_id: int) -> Webhook:
    """A hook of the membership's workspace, or 404; PermissionDenied for a member who is not an owner."""
    if not membership.may(OWNER):
        raise PermissionDenied("Only owners manage webhooks.")
    found = (
        Webhook.objects.filter(workspace=membership.workspace, id=hook_id)
        .select_related("workspace", "created_by")
        .first()
    )
    if found is None:
        raise Http404("no such webhook")
    return found


def delivery_write(membership: Membership, hook_id: int, delivery_id: int) -> Delivery:
    """A delivery of that hook, or 404."""
    hook = hook_write(membership, hook_id)
    found = Delivery.objects.filter(webhook=hook, id=delivery_id).select_related("webhook__workspace").first()
    if found is None:
        raise Http404("no such delivery")
    return found
