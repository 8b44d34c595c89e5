"""The audit log's only writer: called by services inside the transaction of the change it describes."""

from collections.abc import Iterable
from contextvars import ContextVar
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, cast

from django.contrib.auth import get_user_model
from django.db import connection, models

from ..models import AuditEntry

if TYPE_CHECKING:  # the lowest app names the types of the one above it, and imports nothing of it
    from webapp.accounts.models import Membership, User, Workspace


@dataclass(frozen=True)
class ChangeOrigin:
    """The origin of a change, besides the person who makes it."""

    address: str = ""
    token: str = ""


origin: ContextVar[ChangeOrigin] = ContextVar("origin", default=ChangeOrigin())  # noqa: B039 - it cannot be changed


def asked_by(row: models.Model, column: str = "created_by") -> "User | None":
    """The person who asked for the work of `row`, as they are now: None once their account was erased. Call it first in the transaction
    that ends the work.

    A worker read the row long before. If it wrote the name of an erased person, the end of its work would be undone, and all of it would be
    done again. Until the transaction is over nobody can erase the account.
    """
    known = getattr(row, f"{column}_id")
    if known is not None and not _is_there(known):
        setattr(row, column, None)
    return cast("User | None", getattr(row, column))


def still_there(user: "User | None") -> "User | None":
    """The person, or None once their account was erased, as `asked_by` tells of a row's. First of all in the transaction that writes
    their name."""
    return user if user is not None and _is_there(user.pk) else None


def _is_there(known: int) -> bool:
    with connection.cursor() as cursor:
        table = connection.ops.quote_name(get_user_model()._meta.db_table)
        cursor.execute(f"SELECT 1 FROM {table} WHERE id = %s FOR KEY SHARE", [known])  # noqa: S608  a name of ours
        return cursor.fetchone() is not None


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


def record_each(
    where: "Membership | Workspace",
    actor: "User | None",
    action: str,
    obj: models.Model,
    details: Iterable[dict[str, Any]],
) -> None:
    """One entry of the object for each detail, in one statement."""
    AuditEntry.objects.bulk_create(_entry(where, actor, action, obj, detail) for detail in details)


def who_asked(obj: models.Model, *actions: str, **detail: object) -> int | None:
    """The id of the person of the newest entry of `obj` with one of these actions and this detail; None if there is none.

    A process ends what a person has asked it to end: the change that it makes has no actor, but the person need not be told of it.
    """
    about = {"object_type": obj._meta.model_name or "", "object_id": obj.pk, "action__in": actions}
    rows = AuditEntry.objects.filter(**about, **{f"detail__{name}": value for name, value in detail.items()})
    return rows.order_by("-id").values_list("actor_id", flat=True).first()


def has_entry(obj: models.Model, action: str, **detail: object) -> bool:
    """Whether the log has an entry of `obj` with this action and this detail."""
    about = {"object_type": obj._meta.model_name or "", "object_id": obj.pk, "action": action}
    return AuditEntry.objects.filter(**about, **{f"detail__{name}": value for name, value in detail.items()}).exists()


def entry_json(entry: AuditEntry) -> dict[str, object]:
    """An entry as programs read it."""
    return {
        "id": entry.pk,
        "at": entry.created_at.isoformat(),
        "actor": entry.actor.email if entry.actor else None,
        "actor_erased": entry.actor is None and had_actor(entry),
        "action": entry.action,
        "object_type": entry.object_type,
        "object_id": entry.object_id,
        "detail": entry.detail,
        "address": entry.address,
        "token": entry.token,
    }


def had_actor(entry: AuditEntry) -> bool:
    """Whether a person did this whose account may be erased: the seal counts them, but the entry no longer names them."""
    seal = getattr(entry, "seal", None)
    return seal is not None and seal.actor is not None


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
