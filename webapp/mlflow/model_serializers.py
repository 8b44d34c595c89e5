"""Saved models, families and their versions as MLflow's objects."""

from collections.abc import Iterable
from typing import Any

from webapp.tracking.models import FamilyVersion, LoggedRun, ModelFamily, SavedMetric, SavedModel

from .schemas import milliseconds
from .serializers import metric, pairs

STATUS = {
    SavedModel.State.PENDING: "LOGGED_MODEL_PENDING",
    SavedModel.State.READY: "LOGGED_MODEL_READY",
    SavedModel.State.FAILED: "LOGGED_MODEL_UPLOAD_FAILED",
}
STATES = {name: state for state, name in STATUS.items()}
WHY_NOT = "touchstone.not_loadable"
"""The tag that says why a version did not join the registry of models."""
JOINED = "touchstone.model"
"""The tag with the number of the model in the registry that was made of a version."""


def place(row: LoggedRun, path: str, saved: SavedModel | None = None) -> str:
    """The address of the files, as the protocol names it."""
    home = f"mlflow-artifacts:/{row.run.experiment_id}"
    if saved is None:
        return f"{home}/{row.key}/artifacts" + (f"/{path}" if path else "")
    inside = path.removeprefix(saved.folder).strip("/")
    return f"{home}/models/{saved.key}/artifacts" + (f"/{inside}" if inside else "")


def saved(row: SavedModel) -> dict[str, Any]:
    """A saved model. Load `metrics__row` with it to save queries."""
    info = {
        "model_id": row.key,
        "experiment_id": str(row.row.run.experiment_id),
        "name": row.name,
        "creation_timestamp_ms": milliseconds(row.created_at),
        "last_updated_timestamp_ms": milliseconds(row.updated_at),
        "artifact_uri": place(row.row, row.folder, row),
        "status": STATUS[SavedModel.State(row.state)],
        "model_type": row.kind,
        "source_run_id": row.row.key,
        "tags": pairs(row.tags),
    }
    metrics = [measured(row, each) for each in sorted(row.metrics.all(), key=lambda each: each.pk)]
    return {"info": info, "data": {"params": pairs(row.params), "metrics": metrics}}


def measured(model: SavedModel, value: SavedMetric) -> dict[str, Any]:
    told = {**metric(value), "model_id": model.key, "run_id": value.row.key}
    return told | ({"dataset_name": value.dataset, "dataset_digest": value.digest} if value.dataset else {})


def family(row: ModelFamily, latest: Iterable[FamilyVersion]) -> dict[str, Any]:
    return {
        "name": row.name,
        "creation_timestamp": milliseconds(row.created_at),
        "last_updated_timestamp": milliseconds(row.updated_at),
        "description": row.description,
        "tags": pairs(row.tags),
        "aliases": [{"alias": name, "version": str(number)} for name, number in sorted(row.aliases.items())],
        "latest_versions": [version(each) for each in latest],
    }


def version(row: FamilyVersion) -> dict[str, Any]:
    ours = {JOINED: str(row.model_id)} if row.model_id else {WHY_NOT: row.why_not} if row.why_not else {}
    told = {
        "name": row.family.name,
        "version": str(row.number),
        "creation_timestamp": milliseconds(row.created_at),
        "last_updated_timestamp": milliseconds(row.updated_at),
        "current_stage": row.stage,
        "description": row.description,
        "source": row.source,
        "run_id": row.row.key if row.row else "",
        "status": "READY",
        "tags": pairs({**row.tags, **ours}),
        "aliases": sorted(name for name, number in row.family.aliases.items() if number == row.number),
    }
    return told | ({"model_id": row.saved.key} if row.saved else {})
