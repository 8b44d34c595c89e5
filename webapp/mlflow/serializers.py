"""Our rows as MLflow's objects."""

import math
from collections.abc import Iterable
from typing import Any

from webapp.core.forms.formtree import flatten
from webapp.experiments.metrics.points import LoggedPoint
from webapp.experiments.models import Experiment, Run
from webapp.tracking.models import LoggedRun, SavedMetric, SavedModel

from .schemas import milliseconds

State = Run.State
STATUS = {
    State.DRAFT: "SCHEDULED",
    State.QUEUED: "SCHEDULED",
    State.STARTING: "SCHEDULED",
    State.PAUSED: "SCHEDULED",
    State.STOPPED: "KILLED",
    State.FINISHED: "FINISHED",
    State.FAILED: "FAILED",
}
STATES = {
    "RUNNING": State.RUNNING,
    "SCHEDULED": State.STARTING,
    "FINISHED": State.FINISHED,
    "FAILED": State.FAILED,
    "KILLED": State.STOPPED,
}
RUN_NAME = "mlflow.runName"


def status(run: Run) -> str:
    return STATUS.get(State(run.state), "RUNNING")


def experiment(row: Experiment) -> dict[str, Any]:
    """An experiment as MLflow has it. The row must have `logged` loaded."""
    made = milliseconds(row.created_at)
    kept = getattr(row, "logged", None)
    return {
        "experiment_id": str(row.pk),
        "name": row.name,
        "artifact_location": f"mlflow-artifacts:/{row.pk}",
        "lifecycle_stage": "active",
        "creation_time": made,
        "last_update_time": made,
        "tags": pairs(kept.tags if kept else {}),
    }


def info(row: LoggedRun) -> dict[str, Any]:
    """A run's facts. Missing ones are left out, because protobuf has no null."""
    run = row.run
    told = {
        "run_id": row.key,
        "run_uuid": row.key,
        "run_name": row.tags.get(RUN_NAME) or str(run),
        "experiment_id": str(run.experiment_id),
        "user_id": row.tags.get("mlflow.user", ""),
        "status": status(run),
        "start_time": milliseconds(run.started_at),
        "end_time": milliseconds(run.ended_at),
        "artifact_uri": f"mlflow-artifacts:/{run.experiment_id}/{row.key}/artifacts",
        "lifecycle_stage": "active" if row.deleted_at is None else "deleted",
    }
    return {name: value for name, value in told.items() if value is not None}


def run(row: LoggedRun, latest: Iterable[LoggedPoint], models: Iterable[SavedModel] = ()) -> dict[str, Any]:
    params = {
        key: value if isinstance(value, str) else str(value) for key, value in flatten(row.run.config).items() if key
    }
    tags = {RUN_NAME: str(row.run), **row.tags}
    data = {"metrics": [metric(each) for each in latest], "params": pairs(params), "tags": pairs(tags)}
    outputs = {"model_outputs": [{"model_id": each.key, "step": each.step} for each in models]}
    return {"info": info(row), "data": data, "inputs": {}, "outputs": outputs}


def metric(point: LoggedPoint | SavedMetric) -> dict[str, Any]:
    value: float | str = point.value
    if not math.isfinite(point.value):  # as protobuf writes it in JSON
        value = "NaN" if math.isnan(point.value) else "Infinity" if point.value > 0 else "-Infinity"
    return {"key": point.key, "value": value, "timestamp": milliseconds(point.time), "step": point.step}


def pairs(values: dict[str, str]) -> list[dict[str, str]]:
    return [{"key": key, "value": value} for key, value in sorted(values.items())]
