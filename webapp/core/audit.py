"""The audit log's only writer: called by services inside the transaction of the change it describes."""

from collections.abc import Iterable
from contextvars import ContextVar
from dataclasses import dataclass
from typing import TYPE_CHECKING, cast

from django.db import models

from .models import AuditEntry

if TYPE_CHECKING:  # the lowest app names the types of the one above it, and imports nothing of it
    from webapp.accounts.models import Membership, User, Workspace


@dataclass(frozen=True)
class Origin:
    """Where a change comes from, beside who makes it."""

    address: str = ""
    token: str = ""


origin: ContextVar[Origin] = ContextVar("origin", default=Origin())  # noqa: B039 - it cannot be changed


def record(
    where: "Membership | Workspace", actor: "User | None", action: str, obj: models.Model, **detail: object
) -> AuditEntry:
    """Writes one entry. `where` names the workspace; `actor` None stands for the system; `detail` must be JSON."""
    entry = _entry(where, actor, action, obj, detail)
    entry.save()
    return entry


def record_all(
    where: "Membership | Workspace",
    actor: "User | None",
    action: str,
    objects: Iterable[models.Model],
    **detail: object,
) -> None:
    """One entry for each object, with the same detail, in one statement."""
    AuditEntry.objects.bulk_create(_entry(where, actor, action, obj, detail) for obj in objects)


def _entry(
    where: "Membership | Workspace", actor: "User | None", action: str, obj: models.Model, detail: dict[str, object]
) -> AuditEntry:
    workspace = cast("Workspace", getattr(where, "workspace", None) or where)
    came = origin.get()
    return AuditEntry(
        workspace=workspace,
        actor=actor,
        action=action,
        object_type=obj._meta.model_name or "",
        object_id=obj.pk,
        detail=detail,
        address=came.address,
        token=came.token,
    )
