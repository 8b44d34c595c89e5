"""Counts the content of another tool's files that examples cannot hold (`unsaid` in the API), over the version that the import made."""

from collections import Counter
from typing import Any

from django.db import connection

from ..formats.fields import UNSAID
from ..formats.importers import REGISTRY
from ..models import DatasetVersion
from .checkpoint import ImportCheckpoint
from .inspection import KINDS, ImportSource

LONGEST = 200  # characters of a column's name that are told
NAMED = 20  # files without examples in an archive that are named
COUNTED = """
SELECT reason, count(*)
FROM datasets_versionmember AS member
JOIN datasets_example AS example ON example.id = member.example_id
CROSS JOIN LATERAL (SELECT example.canonical::jsonb -> 'meta' -> %(name)s AS told) AS meta
CROSS JOIN LATERAL jsonb_array_elements_text(CASE WHEN jsonb_typeof(told) = 'array' THEN told ELSE '[]' END) AS reason
WHERE member.version_id = %(version)s
GROUP BY reason ORDER BY count(*) DESC, reason LIMIT %(most)s
"""


def counts(version: DatasetVersion, given: ImportSource) -> dict[str, int]:
    """Reason -> rows; empty for formats that leave nothing out. For an archive, the files without examples are included."""
    if not REGISTRY[given.format].unsaid:
        return {}
    asked: dict[str, Any] = {"name": UNSAID, "version": version.pk, "most": KINDS}
    with connection.cursor() as cursor:
        cursor.execute(COUNTED, asked)
        found: dict[str, int] = dict(cursor.fetchall())
    unread = given.unread
    named = {f"{name}: a file without examples": 1 for name in unread[:NAMED]}
    return found | named | ({"other files without examples": len(unread) - NAMED} if len(unread) > NAMED else {})


def add_columns(unread: Counter[str], more: Counter[str]) -> None:
    """Adds rows of columns that the mapping does not name, of the first kinds alone."""
    for name, rows in more.items():
        told = (name if name.isprintable() else ascii(name))[:LONGEST]
        if told in unread or len(unread) < KINDS:
            unread[told] += rows


def of_columns(taken: ImportCheckpoint | None) -> dict[str, int]:
    """Reason -> rows, for the columns of a plain table that the given mapping does not name."""
    unread = Counter(taken.unread if taken else {}).most_common()
    return {f"the column {name}: no field comes from it, so it is only in meta": rows for name, rows in unread}
