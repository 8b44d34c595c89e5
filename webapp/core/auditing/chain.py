"""A hash chain over the audit log: what was sealed cannot be changed or taken out without every later digest being wrong.

Entries are sealed a moment after they are written, in the order in which they were seen: a transaction that writes an entry waits for
nobody. A trigger refuses changes of entries and seals; the chain shows what somebody did who went around it. The end of the chain can only
be shown cut off to who has noted its digest: `manage.py audit_verify` prints it.
"""

import json
from collections.abc import Iterator
from dataclasses import dataclass
from datetime import UTC
from hashlib import sha256

from django.db import transaction

from ..database import locks
from ..models import AuditEntry, AuditSeal

AT_A_TIME = 2_000
START = "0" * 64


@dataclass(frozen=True)
class Verified:
    """The number of sealed and unsealed entries, the last digest, and what is wrong: the first places in words."""

    sealed: int
    waiting: int
    head: str
    problems: list[str]


def digest(before: str, entry: AuditEntry, actor: int | None) -> str:
    """SHA-256 over the previous digest and the entry with its actor, as JSON."""
    said = [
        *(entry.pk, entry.workspace_id, actor, entry.action, entry.object_type, entry.object_id, entry.detail),
        *(entry.address, entry.token, entry.created_at.astimezone(UTC).isoformat()),
    ]
    return sha256(f"{before}{json.dumps(said, sort_keys=True)}".encode()).hexdigest()


@transaction.atomic
def seal() -> int:
    """Seals the entries that are not sealed yet; returns their number."""
    locks.until_commit(locks.Work.AUDIT_SEAL)
    before = head()
    count = 0
    while entries := list(AuditEntry.objects.filter(seal=None).order_by("id")[:AT_A_TIME]):
        made = []
        for entry in entries:
            before = digest(before, entry, entry.actor_id)
            made.append(AuditSeal(entry=entry, actor=entry.actor_id, digest=before))
        AuditSeal.objects.bulk_create(made)
        count += len(made)
    return count


def verify(shown: int = 20) -> Verified:
    """Reads the whole chain again."""
    before, sealed, problems = START, 0, []
    for row in _seals():
        sealed += 1
        if row.digest != digest(before, row.entry, row.actor):
            problems.append(f"entry {row.entry_id} was changed after it was sealed, or an entry before it was removed")
        if row.entry.actor_id not in (row.actor, None):
            problems.append(f"entry {row.entry_id} does not name the same person as when it was sealed")
        before = row.digest
    waiting = AuditEntry.objects.filter(seal=None).count()
    return Verified(sealed, waiting, before, problems[:shown])


def head() -> str:
    """The last digest."""
    return AuditSeal.objects.order_by("-id").values_list("digest", flat=True).first() or START


def holds(head: str) -> bool:
    """Whether this digest was ever the chain's last one and is still part of it."""
    return AuditSeal.objects.filter(digest=head).exists()


def _seals() -> Iterator[AuditSeal]:
    rows = AuditSeal.objects.select_related("entry").order_by("id")
    last = 0
    while found := list(rows.filter(id__gt=last)[:AT_A_TIME]):
        yield from found
        last = found[-1].pk
