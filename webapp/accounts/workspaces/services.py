"""Workspaces are made."""

import secrets

from django.db import transaction
from django.utils.text import slugify

from webapp.core import audit
from webapp.core.problems import Invalid

from ..models import Membership, Role, User, Workspace


def may_create_workspaces(user: User) -> bool:
    return user.is_administrator or user.may_create_workspaces


@transaction.atomic
def create_workspace(name: str, owner: User) -> Membership:
    """A new workspace with `owner` as its first member; the first one of an installation makes its administrator.

    The caller has checked that `owner` may: see `may_create_workspaces`.
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
    """Whether people of the workspace may show runs and reports by links that need no account. Without it no link of the workspace opens,
    from now on; those that were not withdrawn open again once it is allowed again."""
    changed = Workspace.objects.filter(pk=membership.workspace_id).exclude(allows_share_links=allowed)
    if changed.update(allows_share_links=allowed):
        audit.record(membership, membership.user, "workspace.share_links", membership.workspace, allowed=allowed)
    membership.workspace.allows_share_links = allowed
    return membership.workspace
