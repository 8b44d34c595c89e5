"""Services that create workspaces and change their rules."""

import secrets

from django.db import transaction
from django.utils.text import slugify

from webapp.core.auditing import audit
from webapp.core.problems import Invalid

from ..models import Membership, Role, User, Workspace


def may_create_workspaces(user: User) -> bool:
    return user.is_administrator or user.may_create_workspaces


@transaction.atomic
def create_workspace(name: str, owner: User) -> Membership:
    """Creates a workspace with `owner` as its first member. The first owner of an installation becomes its administrator.

    The caller has checked that `owner` may do this: see `may_create_workspaces`.
    """
    if not name.strip():
        raise Invalid("A workspace needs a name.", {"name": "must not be empty"})
    if not Workspace.objects.exists():
        User.objects.filter(pk=owner.pk).update(is_administrator=True)
    base = slugify(name)[:40] or "workspace"
    slug = base
    while Workspace.objects.filter(slug=slug).exists():
        slug = f"{base}-{secrets.token_hex(2)}"
    workspace = Workspace.objects.create(name=name.strip(), slug=slug)
    membership = Membership.objects.create(user=owner, workspace=workspace, role=Role.OWNER)
    audit.record(workspace, owner, "workspace.created", workspace)
    return membership


@transaction.atomic
def allow_share_links(membership: Membership, allowed: bool) -> Workspace:
    """Sets whether people of the workspace may show runs and reports by links that need no account. If not, no link of the workspace opens
    from now on. Links that were not revoked open again once the rule allows them again."""
    changed = Workspace.objects.filter(pk=membership.workspace_id).exclude(allows_share_links=allowed)
    if changed.update(allows_share_links=allowed):
        audit.record(membership, membership.user, "workspace.share_links", membership.workspace, allowed=allowed)
    membership.workspace.allows_share_links = allowed
    return membership.workspace
