"""Reads of the audit log."""

import json

from django.db.models import Q, QuerySet

from webapp.core.auditing import audit
from webapp.core.database.paging import Page, page
from webapp.core.models import AuditEntry
from webapp.core.problems import Problem

from ..models import Membership

EXPORTED_AT_A_TIME = 1_000


def audit_entries(membership: Membership, action: str = "", who: str = "") -> QuerySet[AuditEntry]:
    """Entries of the workspace's audit log whose action begins with `action`, by people whose address or name contains `who`."""
    return _asked(AuditEntry.objects.filter(workspace=membership.workspace), action, who)


def _asked(entries: QuerySet[AuditEntry], action: str, who: str) -> QuerySet[AuditEntry]:
    entries = entries.select_related("actor", "seal")
    if action := action.strip():
        entries = entries.filter(action__istartswith=action)
    if who := who.strip():
        entries = entries.filter(Q(actor__email__icontains=who) | Q(actor__name__icontains=who))
    return entries


def audit_page(membership: Membership, cursor: str | None = None, action: str = "", who: str = "") -> Page[AuditEntry]:
    """A page of the same entries, newest first, 50 a page."""
    return page(audit_entries(membership, action, who), cursor, 50, "-id")


def audit_of_all(cursor: str | None = None, action: str = "", who: str = "") -> Page[AuditEntry]:
    """A page of the entries of all workspaces, each with its workspace, for administrators of the installation."""
    entries = _asked(AuditEntry.objects.select_related("workspace"), action, who)
    try:
        return page(entries, cursor, 50, "-id")
    except Problem:  # a cursor of another list, cut off or typed by hand: start at the beginning
        return page(entries, None, 50, "-id")


def audit_lines(entries: QuerySet[AuditEntry], after: int) -> tuple[str, int | None]:
    """(JSON Lines of the next entries, oldest first; the id after which the next call continues, None at the end)."""
    rows = list(entries.filter(id__gt=after).order_by("id")[:EXPORTED_AT_A_TIME])
    text = "".join(json.dumps(audit.entry_json(row), ensure_ascii=False) + "\n" for row in rows)
    return text, rows[-1].pk if len(rows) == EXPORTED_AT_A_TIME else None
