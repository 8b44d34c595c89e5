"""Artifacts as JSON."""

from typing import Any

from ..models import Artifact
from ..serializers import iso


def artifact(row: Artifact, present: bool) -> dict[str, Any]:
    """Needs `registered` loaded with the row."""
    model = row.registered
    return {
        "id": row.id,
        "step": row.step,
        "role": row.role,
        "path": row.path,
        "bytes": row.bytes,
        "digest": row.digest,
        "created_at": iso(row.created_at),
        "present": present,
        "model": {"id": model.id, "name": model.name} if model else None,
        "download": f"/api/v1/runs/{row.run_id}/artifacts/{row.id}/download" if present else None,
    }
