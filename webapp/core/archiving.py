"""Archives rows with `archived_at` and restores them: an archived row is off its list, and rows that rest on it stay as they are."""

from typing import TYPE_CHECKING, Any

from django.db import models, transaction
from django.utils import timezone

from .auditing import audit

if TYPE_CHECKING:
    from webapp.accounts.models import Membership


@transaction.atomic
def archive(membership: "Membership", row: Any, kind: str) -> None:
    """Takes the row off its list; a second time changes nothing. The audit log has it as `{kind}.archived`."""
    row.archived_at = timezone.now()
    if _rows(row).filter(archived_at=None).update(archived_at=row.archived_at):
        audit.record(membership, membership.user, f"{kind}.archived", row, name=row.name)


@transaction.atomic
def restore(membership: "Membership", row: Any, kind: str) -> None:
    """Puts an archived row back on its list; a second time changes nothing."""
    if _rows(row).exclude(archived_at=None).update(archived_at=None):
        audit.record(membership, membership.user, f"{kind}.restored", row, name=row.name)
    row.archived_at = None


def _rows(row: models.Model) -> "models.QuerySet[Any]":
    return type(row)._default_manager.filter(pk=row.pk)
