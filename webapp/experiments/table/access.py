"""Finds saved views and changes of the caller's workspace, or answers 404."""

from django.http import Http404

from webapp.accounts.models import Membership

from ..access import may_read, may_write
from . import queries
from .models import RunChange, RunView


def view_read(membership: Membership, view_id: int) -> RunView:
    found = queries.views(may_read(membership).workspace_id).filter(pk=view_id).first()
    if found is None:
        raise Http404("no such view")
    return found


def view_write(membership: Membership, view_id: int) -> RunView:
    return view_read(may_write(membership), view_id)


def change_write(membership: Membership, change_id: int) -> RunChange:
    found = queries.changes(may_write(membership)).filter(pk=change_id).first()
    if found is None:
        raise Http404("no such change")
    return found
