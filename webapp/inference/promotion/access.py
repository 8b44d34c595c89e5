"""Fetching is authorisation: an alias of the caller's workspace, or 404."""

from django.http import Http404

from webapp.accounts.models import Membership

from ..access import may_read, may_write
from ..models import MARK, ModelAlias
from . import queries


def alias_read(membership: Membership, name: str) -> ModelAlias:
    return _alias(may_read(membership), name)


def alias_write(membership: Membership, name: str) -> ModelAlias:
    return _alias(may_write(membership), name)


def _alias(membership: Membership, name: str) -> ModelAlias:
    found = queries.aliases(membership.workspace_id).filter(name=name.removeprefix(MARK)).first()
    if found is None:
        raise Http404("no such alias")
    return found
