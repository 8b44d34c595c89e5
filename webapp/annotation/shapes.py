"""Projects as the API tells of them."""

from dataclasses import asdict
from typing import Any

from webapp.datasets.models import DatasetVersion

from .models import Guidelines
from .queries.projects import Progress, Row


def project(row: Row) -> dict[str, Any]:
    found = row.project
    return {
        "id": found.pk,
        "name": found.name,
        "kind": found.kind,
        "state": found.state,
        "version": version(found.version),
        "overlap": found.overlap,
        "strategy": found.strategy,
        "settings": found.settings,
        "tasks_made": found.tasks_made,
        "created_at": found.created_at,
        "progress": progress(row.progress),
        "people": row.people,
    }


def version(row: DatasetVersion) -> dict[str, Any]:
    return {"dataset_id": row.dataset_id, "dataset": row.dataset.name, "number": row.number, "digest": row.digest}


def progress(far: Progress) -> dict[str, Any]:
    return {**asdict(far), "untouched": far.untouched, "fraction": far.fraction}


def guidelines(row: Guidelines) -> dict[str, Any]:
    author = str(row.created_by) if row.created_by else None
    answers = getattr(row, "answers", 0)
    return {"number": row.number, "text": row.text, "author": author, "created_at": row.created_at, "answers": answers}
