"""Counts the content of another tool's files that examples cannot hold (`unsaid` in the API), over the version that the import made."""

from typing import Any

from django.db import connection

from ..formats.fields import UNSAID
from ..formats.importers import REGISTRY
from ..models import DatasetVersion
from .inspection import KINDS, ImportSource

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
