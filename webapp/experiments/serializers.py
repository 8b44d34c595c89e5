"""Rows as the JSON that the API, the websocket and the pages' scripts all see."""

from datetime import datetime, timedelta
from typing import Any

from django.utils import timezone

from . import recipe_metrics
from .bulk import StoredLine
from .models import Artifact, Experiment, LogLine, Run


def iso(moment: datetime | None) -> str | None:
    return moment.isoformat() if moment else None


def run(row: Run, *, config: bool = True) -> dict[str, Any]:
    """The Run object of the API. Needs `experiment`, `dataset_version.dataset` and `model` loaded with the row."""
    version, model = row.dataset_version, row.model
    return {
        "id": row.id,
        "name": str(row),
        "number": row.number,
        "experiment": {"id": row.experiment_id, "name": row.experiment.name},
        "recipe": row.recipe,
        "state": row.state,
        "state_reason": row.state_reason,
        "progress": progress(row),
        **({"config": row.config, "outputs": outputs(row)} if config else {}),
        "summary": row.summary,
        "result": recipe_metrics.result_json(row),
        "dataset": version
        and {
            "id": version.dataset_id,
            "name": version.dataset.name,
            "version_id": version.id,
            "version": version.number,
        },
        "model": model and {"id": model.pk, "name": model.name},
        "attempt": row.attempt,
        "under_way_s": None if row.is_logged else under_way(row, timezone.now()).total_seconds(),
        "time_limit_s": row.time_limit.total_seconds() if row.time_limit is not None else None,
        "token_limit": row.token_limit,
        "judge_token_limit": row.judge_token_limit,
        "judge_money_limit": None if row.judge_money_limit is None else float(row.judge_money_limit),
        "stop_early": row.stop_early,
        "not_before": iso(row.not_before),
        "retries": row.retries,
        "last_seq": row.last_seq,
        "forked_from": row.forked_from_id,
        "start_step": row.start_step,
        "created_at": iso(row.created_at),
        "started_at": iso(row.started_at),
        "first_metric_at": iso(row.first_metric_at),
        "ended_at": iso(row.ended_at),
    }


def under_way(row: Run, now: datetime) -> timedelta:
    """The time that it has run, all its attempts together; the time in the line does not count."""
    running = now - row.begun_at if row.begun_at is not None else timedelta()
    return row.under_way + max(running, timedelta())


def within_limit(row: Run, seconds: float | None, now: datetime) -> float | None:
    """The time that the run is expected to take, or what its time limit leaves of it; None stays None."""
    if seconds is None or row.time_limit is None:
        return seconds
    return min(seconds, max(timedelta(), row.time_limit - under_way(row, now)).total_seconds())


def outputs(row: Run) -> list[dict[str, Any]]:
    """The models of the registry that the run has left behind, oldest first. One query, unless `with_outputs` was asked."""
    kept = getattr(row, "outputs_kept", None)
    if kept is None:
        kept = Artifact.objects.filter(run=row, registered__isnull=False).select_related("registered").order_by("id")
    return [
        {"id": model.id, "name": model.name, "role": model.role, "format": model.format, "step": artifact.step}
        for artifact in kept
        if (model := artifact.registered) is not None
    ]


def progress(row: Run) -> dict[str, Any]:
    """`fraction` is of the whole run; `phase_done` of `phase_total` is its present phase."""
    if row.state == Run.State.FINISHED:
        fraction = 1.0
    else:
        fraction = min(row.step / row.steps_total, 1.0) if row.steps_total else 0.0
    return {
        "step": row.step,
        "steps_total": row.steps_total,
        "fraction": fraction,
        "phase": row.phase,
        "phase_done": row.phase_done,
        "phase_total": row.phase_total,
        "eta_s": within_limit(row, row.eta_s, timezone.now()),
        "learner_device": row.learner_device,
        "sampler_device": row.sampler_device,
    }


def experiment(row: Experiment, runs: int) -> dict[str, Any]:
    return {
        "id": row.id,
        "name": row.name,
        "description": row.description,
        "runs": runs,
        "created_at": iso(row.created_at),
    }


def log_line(row: LogLine | StoredLine) -> dict[str, Any]:
    """`seq` orders the lines and is the cursor of the log; lines of the server and of Ray have one too."""
    return {"seq": row.id, "time": iso(row.time), "step": row.step, "level": row.level, "message": row.message}
