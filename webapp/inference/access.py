"""Fetching is authorisation: a row of the caller's workspace, or 404. Annotators see neither models nor endpoints."""

from django.http import Http404

from webapp.accounts.access import at_least
from webapp.accounts.models import Membership, Role

from .models import RegisteredModel


def may_read(membership: Membership) -> Membership:
    return at_least(membership, Role.REVIEWER)


def may_write(membership: Membership) -> Membership:
    return at_least(membership, Role.RESEARCHER)


def model_read(membership: Membership, model_id: int) -> RegisteredModel:
    return _model(may_read(membership), model_id)


def model_write(membership: Membership, model_id: int) -> RegisteredModel:
    return _model(may_write(membership), model_id)


def _model(membership: Membership, model_id: int) -> RegisteredModel:
    rows = RegisteredModel.objects.select_related(
        "base", "artifact__run__experiment", "artifact__run__dataset_version__dataset"
    )
    found = rows.filter(workspace_id=membership.workspace_id, id=model_id).first()
    if found is None:
        raise Http404("no such model")
    return found
