"""Notes on tokens as JSON."""

from typing import Any

from django.urls import reverse

from webapp.accounts.models import Membership

from ..models import TokenNote
from . import access
from .queries import ReadNote, read

PLAIN = (
    "id",
    "step",
    "phase",
    "group",
    "index",
    "start",
    "end",
    "quote",
    "text",
    "revision",
    "created_at",
    "changed_at",
)


def note(found: ReadNote, membership: Membership) -> dict[str, Any]:
    row = found.note
    return {
        **{name: getattr(row, name) for name in PLAIN},
        "example_key": found.example_key,
        "holds": found.holds,
        "author": str(row.created_by) if row.created_by else "",
        "may_change": access.may_change(membership, row),
        "may_delete": access.may_delete(membership, row),
        "url": reverse("run_note", args=[row.run_id, row.pk]),
    }


def one(row: TokenNote, membership: Membership) -> dict[str, Any]:
    (found,) = read(row.run, [row])
    return note(found, membership)
