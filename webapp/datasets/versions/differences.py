"""The differences of two versions of a dataset, by key."""

from dataclasses import dataclass
from typing import Literal

from django.core.cache import cache
from django.db import connection

from webapp.core.database.paging import MAX_LIMIT
from webapp.core.problems import Invalid
from webapp.core.text.json_diff import MISSING, Change, differing

from ..models import DatasetVersion, Example

__all__ = ["MISSING", "ChangedKey", "counts", "page"]
Kind = Literal["added", "removed", "changed"]
KEPT_S = 24 * 3600  # versions never change, so neither do their differences
# The examples that only one of the versions has; ids first, so that wide rows are read only for the difference
SIDES = """
    WITH gone AS (
        SELECT example.key, example.id FROM datasets_versionmember AS member
        JOIN datasets_example AS example ON example.id = member.example_id
        WHERE member.version_id = %(before)s AND NOT EXISTS (
            SELECT 1 FROM datasets_versionmember AS other
            WHERE other.version_id = %(after)s AND other.example_id = member.example_id)
    ), come AS (
        SELECT example.key, example.id FROM datasets_versionmember AS member
        JOIN datasets_example AS example ON example.id = member.example_id
        WHERE member.version_id = %(after)s AND NOT EXISTS (
            SELECT 1 FROM datasets_versionmember AS other
            WHERE other.version_id = %(before)s AND other.example_id = member.example_id)
    )
"""
WHERE = {"added": "gone.id IS NULL", "removed": "come.id IS NULL", "changed": "gone.id = gone.id AND come.id = come.id"}


@dataclass(frozen=True)
class ChangedKey:
    """One key: ids of its examples on both sides (None if it has none), and the fields in which they differ."""

    key: str
    excerpt: str
    before: int | None
    after: int | None
    changes: list[Change]


@dataclass(frozen=True)
class ChangesPage:
    items: list[ChangedKey]
    next: str | None


def counts(before: DatasetVersion, after: DatasetVersion) -> dict[str, int]:
    """The numbers of keys that were added, removed and changed, and of those that are the same."""
    name = f"diff:{before.pk}:{before.digest[:16]}:{after.pk}:{after.digest[:16]}"
    found: dict[str, int] = cache.get_or_set(name, lambda: _counts(before, after), KEPT_S) or {}
    return found


def _counts(before: DatasetVersion, after: DatasetVersion) -> dict[str, int]:
    sums = ", ".join(f"count(*) FILTER (WHERE {condition})" for condition in WHERE.values())
    with connection.cursor() as cursor:
        cursor.execute(
            f"{SIDES} SELECT {sums} FROM gone FULL JOIN come USING (key)",  # noqa: S608  constants above
            {"before": before.pk, "after": after.pk},
        )
        found = dict(zip(WHERE, map(int, cursor.fetchone()), strict=True))
    return {**found, "same": after.counts.get("examples", 0) - found["added"] - found["changed"]}


def page(
    before: DatasetVersion, after: DatasetVersion, kind: Kind, cursor: str | None = None, limit: int = 50
) -> ChangesPage:
    """The keys of one kind in their order, each with its changed fields. The cursor is the last key."""
    if not 1 <= limit <= MAX_LIMIT:
        raise Invalid("The page size is too small or too large.", {"limit": f"must be between 1 and {MAX_LIMIT}"})
    with connection.cursor() as db:
        db.execute(
            f"{SIDES} SELECT key, gone.id, come.id FROM gone FULL JOIN come USING (key) "  # noqa: S608  constants above
            f"WHERE {WHERE[kind]} AND key > %(from)s ORDER BY key LIMIT %(limit)s",
            {"before": before.pk, "after": after.pk, "from": (cursor or "").replace("\0", ""), "limit": limit + 1},
        )
        rows = db.fetchall()
    held = Example.objects.in_bulk([each for row in rows for each in row[1:] if each])
    items = [_entry(key, gone, come, held) for key, gone, come in rows[:limit]]
    return ChangesPage(items, rows[limit - 1][0] if len(rows) > limit else None)


def _entry(key: str, before: int | None, after: int | None, held: dict[int, Example]) -> ChangedKey:
    sides = [held[each] for each in (before, after) if each is not None]
    changes = list(differing(sides[0].content, sides[1].content)) if len(sides) == 2 else []
    return ChangedKey(key, sides[-1].excerpt, before, after, changes)
