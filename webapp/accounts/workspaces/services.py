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
