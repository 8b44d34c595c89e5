"""Reads of the workspaces of a person."""

from django.db.models import QuerySet

from ..models import Membership, User


def my_memberships(user: User) -> QuerySet[Membership]:
    return Membership.objects.filter(user=user).select_related("user", "workspace").order_by("workspace__name", "id")
