"""Reads over people and workspaces."""

import json
from collections.abc import Sequence
from functools import cache
from typing import TypeVar

from django.db.models import Model, Q, QuerySet
from django.utils import timezone

from webapp.core import audit, prepared
from webapp.core.models import AuditEntry
from webapp.core.paging import Page, page
from webapp.core.problems import Problem

from .models import ApiToken, Invite, Membership, User, Workspace

EXPORTED_AT_A_TIME = 1_000
Row = TypeVar("Row", bound=Model)


def members(membership: Membership) -> QuerySet[Membership]:
    """Everyone in the same workspace."""
    return Membership.objects.filter(workspace=membership.workspace).select_related("user", "workspace")


def my_memberships(user: User) -> QuerySet[Membership]:
    return Membership.objects.filter(user=user).select_related("user", "workspace").order_by("workspace__name", "id")


def my_tokens(membership: Membership) -> QuerySet[ApiToken]:
    """One's own live keys to this workspace, newest first."""
    return ApiToken.objects.filter(user=membership.user, workspace=membership.workspace, revoked_at=None).order_by(
        "-id"
    )


def all_tokens(membership: Membership) -> QuerySet[ApiToken]:
    """Everybody's keys to this workspace that nobody has revoked, newest first; for owners."""
    rows = ApiToken.objects.filter(workspace=membership.workspace, revoked_at=None)
    return rows.select_related("user").order_by("-id")


def open_invites(membership: Membership) -> QuerySet[Invite]:
    """Invitations that can still be accepted."""
    return Invite.objects.filter(
        workspace=membership.workspace, accepted_at=None, expires_at__gt=timezone.now()
    ).order_by("-id")


def audit_entries(membership: Membership, action: str = "", who: str = "") -> QuerySet[AuditEntry]:
    """The workspace's audit log: entries whose action begins with `action`, by people whose address or name holds `who`."""
    return _asked(AuditEntry.objects.filter(workspace=membership.workspace), action, who)


def _asked(entries: QuerySet[AuditEntry], action: str, who: str) -> QuerySet[AuditEntry]:
    entries = entries.select_related("actor", "seal")
    if action := action.strip():
        entries = entries.filter(action__istartswith=action)
    if who := who.strip():
        entries = entries.filter(Q(actor__email__icontains=who) | Q(actor__name__icontains=who))
    return entries


def audit_page(membership: Membership, cursor: str | None = None, action: str = "", who: str = "") -> Page[AuditEntry]:
    """The same newest first, 50 entries a page."""
    return page(audit_entries(membership, action, who), cursor, 50, "-id")


def audit_of_all(cursor: str | None = None, action: str = "", who: str = "") -> Page[AuditEntry]:
    """Of all workspaces, which the entries have, for administrators of the installation."""
    entries = _asked(AuditEntry.objects.select_related("workspace"), action, who)
    try:
        return page(entries, cursor, 50, "-id")
    except Problem:  # a cursor of another list, cut or typed by hand: begin at the beginning
        return page(entries, None, 50, "-id")


def audit_lines(entries: QuerySet[AuditEntry], after: int) -> tuple[str, int | None]:
    """(JSON Lines of the next entries, oldest first; the id to go on behind, None at the end)."""
    rows = list(entries.filter(id__gt=after).order_by("id")[:EXPORTED_AT_A_TIME])
    text = "".join(json.dumps(audit.told(row), ensure_ascii=False) + "\n" for row in rows)
    return text, rows[-1].pk if len(rows) == EXPORTED_AT_A_TIME else None


def memberships_of(user_id: object) -> list[Membership]:
    """A person's memberships, oldest first, with `user` and `workspace`; prepared, since every request asks for them."""
    counts = [len(model._meta.concrete_fields) for model in (Membership, User)]
    found = []
    for row in prepared.rows(_memberships_sql(), [int(str(user_id))]):
        membership = _built(Membership, row[: counts[0]])
        membership.user = _built(User, row[counts[0] : sum(counts)])
        membership.workspace = _built(Workspace, row[sum(counts) :])
        found.append(membership)
    return found


@cache
def _memberships_sql() -> str:
    tables: tuple[tuple[type[Model], str], ...] = ((Membership, "m"), (User, "u"), (Workspace, "w"))
    columns = ", ".join(f'{alias}."{field.column}"' for model, alias in tables for field in model._meta.concrete_fields)
    membership, user, workspace = (model._meta.db_table for model, _ in tables)
    # the names come from the models, the value is bound
    return f"""
        SELECT {columns} FROM "{membership}" m
        JOIN "{user}" u ON u.id = m.user_id JOIN "{workspace}" w ON w.id = m.workspace_id
        WHERE m.user_id = %s ORDER BY m.id
    """  # noqa: S608


def _built(model: type[Row], row: Sequence[object]) -> Row:
    return model.from_db("default", [field.attname for field in model._meta.concrete_fields], row)
