"""Models as the API shows them."""

from typing import Any

from ..folders import files
from ..models import RegisteredModel


def model(row: RegisteredModel) -> dict[str, Any]:
    """Needs `base`, `artifact.run.experiment` and `aliases` loaded with the row."""
    return {
        "id": row.pk,
        "name": row.name,
        "source": row.source,
        "path": row.path,
        "description": row.description,
        "facts": row.facts,
        "role": row.role,
        "format": row.format,
        "head": row.head,
        "base": {"id": row.base.pk, "name": row.base.name} if row.base else None,
        "digest": row.digest,
        "run": origin(row),
        "present": files.is_there(row),
        "stage": row.stage,
        "aliases": [alias.name for alias in row.aliases.all()],
        "created_at": row.created_at,
        "archived_at": row.archived_at,
    }


def origin(row: RegisteredModel) -> dict[str, Any] | None:
    """The run that trained the model, and after which step; None if no run did, or if the run was deleted."""
    artifact = getattr(row, "artifact", None)
    if artifact is None:
        return None
    run = artifact.run
    return {"id": run.pk, "name": str(run), "experiment": run.experiment.name, "step": artifact.step}
