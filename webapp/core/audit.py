"""The audit log's only writer: called by services inside the transaction of the change it describes."""

from typing import TYPE_CHECKING, cast

from django.db import models

from .models import AuditEntry

if TYPE_CHECKING:  # the lowest app names the types of the one above it, and imports nothing of it
    from webapp.accounts.models import Membership, User, Workspace


def record(
    where: "Membership | Workspace", actor: "User | None", action: str, obj: models.Model, **detail: object
) -> AuditEntry:
    """Writes one entry. `where` names the workspace; `actor` None stands for the system; `detail` must be JSON."""
    workspace = cast("Workspace", getattr(where, "workspace", None) or where)
    return AuditEntry.objects.create(
        workspace=workspace,
        actor=actor,
        action=action,
        object_type=obj._meta.model_name or "",
        object_id=obj.pk,
        detail=detail,
    )
