"""Audit entries for events that concern all workspaces of a person."""

from webapp.core.auditing import audit

from .models import Membership, User


def record_everywhere(person: User, actor: User | None, action: str, target: User, **detail: object) -> None:
    """An entry in the audit log of each workspace that `person` belongs to."""
    for membership in Membership.objects.filter(user=person).select_related("workspace"):
        audit.record(membership, actor, action, target, **detail)
