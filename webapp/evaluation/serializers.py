"""Rows as the JSON that the API and the export show."""

from typing import Any

from webapp.core.background.priorities import Priority

from .models import Case, Evaluation, Recording


def dataset(row: Evaluation) -> dict[str, Any] | None:
    version = row.dataset_version
    if version is None:
        return None
    name = version.dataset.name
    return {"id": version.dataset_id, "name": name, "version_id": version.pk, "version": version.number}


def evaluation(row: Evaluation, *, headline: Any = None, full: bool = True) -> dict[str, Any]:
    """The Evaluation object of the API; lists leave out config and results."""
    shown = {
        "id": row.pk,
        "name": row.name,
        "recipe": row.recipe,
        "state": row.state,
        "problem": row.problem,
        "priority": Priority(row.priority).label.lower(),
        "progress": row.progress,
        "dataset": dataset(row),
        "recording": row.recording and {"id": row.recording_id, "name": row.recording.name},
        "benchmark": row.benchmark,
        "rerun_of": row.rerun_of_id,
        "headline": headline,
        "created_at": row.created_at.isoformat(),
        "started_at": row.started_at and row.started_at.isoformat(),
        "ended_at": row.ended_at and row.ended_at.isoformat(),
    }
    if full:
        shown |= {"config": row.config, "results": row.results, "headline": (row.results or {}).get("headline")}
    return shown


def case(row: Case) -> dict[str, Any]:
    return {"number": row.number, "subject": row.subject, "values": row.values, "tags": row.tags}


def recording(row: Recording) -> dict[str, Any]:
    return {
        "id": row.pk,
        "name": row.name,
        "kind": row.kind,
        "digest": row.digest,
        "rows": row.rows,
        "judges": row.judges,
        "created_at": row.created_at.isoformat(),
    }
