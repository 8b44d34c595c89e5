"""Permissions of personal data: people may fetch their own."""

from django.http import Http404

from webapp.accounts.models import User

from . import queries
from .models import DataExport


def export(user: User, export_id: int) -> DataExport:
    """One's own export that one asked for, or 404."""
    found = queries.own_exports(user).filter(pk=export_id).select_related("user").first()
    if found is None:
        raise Http404("no such export")
    return found
