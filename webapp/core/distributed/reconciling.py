"""Compares what Ray says with the rows here, and repairs differences. The administrators' page shows the results.

The cache holds when Ray was last heard, since when it is silent, and what the last rounds compared. The workers that ask Ray write it, so
the page asks nobody. A repair is an entry of the audit log, written by the repair itself.
"""

from dataclasses import dataclass
from datetime import datetime
from typing import TYPE_CHECKING

from django.core.cache import cache
from django.db.models import Model, QuerySet
from django.utils import timezone

from ..auditing import audit
from ..models import RECONCILED, AuditEntry

if TYPE_CHECKING:  # the lowest app names the types of the one above it, and imports nothing of it
    from webapp.accounts.models import Workspace

HEARD, SILENT, ROUND = "ray:heard", "ray:silent", "reconciler:round:"
KINDS = ("runs", "jobs")


@dataclass(frozen=True)
class Silence:
    """`why`: the result of the last question to Ray."""

    since: datetime
    why: str


@dataclass(frozen=True)
class ComparedRound:
    """A comparison of all jobs of one kind: how many were with Ray or about to be, and about how many quiet ones Ray was asked."""

    at: datetime
    alive: int
    asked: int


def record_answer() -> None:
    """Records that Ray has answered."""
    cache.set(HEARD, timezone.now().isoformat(), None)
    cache.delete(SILENT)


def not_heard(why: str) -> None:
    """Records that Ray has not answered, or has refused."""
    before = silence()
    since = before.since if before else timezone.now()
    cache.set(SILENT, (since.isoformat(), why), None)


def last_heard() -> datetime | None:
    found = cache.get(HEARD)
    return datetime.fromisoformat(found) if found else None


def silence() -> Silence | None:
    """None while Ray answers."""
    found = cache.get(SILENT)
    return Silence(datetime.fromisoformat(found[0]), found[1]) if found else None


def compared(kind: str, alive: int, asked: int) -> None:
    """Records that a round over the jobs of one of KINDS is over."""
    cache.set(ROUND + kind, (timezone.now().isoformat(), alive, asked), None)


def rounds() -> dict[str, ComparedRound]:
    """The last round of each kind; kinds without a round are left out."""
    found = cache.get_many([ROUND + kind for kind in KINDS])
    told = {kind: found[ROUND + kind] for kind in KINDS if ROUND + kind in found}
    return {kind: ComparedRound(datetime.fromisoformat(at), alive, asked) for kind, (at, alive, asked) in told.items()}


def record(where: "Workspace", action: str, job: Model, *, attempt: int, believed: str, ray: str, done: str) -> None:
    """Writes down one repair, in its transaction: the state that was believed, what Ray said, and what was done."""
    audit.record(where, None, action, job, attempt=attempt, believed=believed, ray=ray, done=done)


def repairs() -> QuerySet[AuditEntry]:
    """The repairs of all workspaces, as entries of the audit log."""
    return AuditEntry.objects.filter(action__in=RECONCILED).select_related("workspace")
