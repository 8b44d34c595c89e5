"""Reads over exports of personal data."""

from django.db.models import QuerySet
from django.utils import timezone

from webapp.accounts.models import User

from .models import DataExport


def mine(user: User) -> "QuerySet[DataExport]":
    """What the person asked for themselves and has not ended, newest first."""
    return DataExport.objects.filter(user=user, digest="", expires_at__gt=timezone.now()).order_by("-pk")


def of_person(user: User) -> "QuerySet[DataExport]":
    """All exports of the person that have not ended, newest first."""
    rows = DataExport.objects.filter(user=user, expires_at__gt=timezone.now())
    return rows.select_related("asked_by").order_by("-pk")
