"""Rows as the JSON that the API, the websocket and the pages' scripts all see."""

from datetime import datetime
from typing import Any

from webapp.evaluation import licence
from webapp.evaluation.licence import Licence

from . import declared, reason_matches
from .alarms import Alarm
from .gallery import Card
from .models import Artifact, Experiment, LogLine, Rollout, Run, RunJudge
from .people import Agreement, Case


def _time(moment: datetime | None) -> str | None:
    return moment.isoformat() if moment else None


def run(row: Run, *, config: bool = True) -> dict[str, Any]:
    """The Run object of the API. Needs `experiment`, `dataset_version.dataset` and `model` loaded with the row."""
    version = row.dataset_version
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
        "result": declared.result_json(row),
        "dataset": {
            "id": version.dataset_id,
            "name": version.dataset.name,
            "version_id": version.id,
            "version": version.number,
        },
        "model": {"id": row.model_id, "name": row.model.name},
        "attempt": row.attempt,
        "last_seq": row.last_seq,
        "forked_from": row.forked_from_id,
        "start_step": row.start_step,
        "created_at": _time(row.created_at),
        "started_at": _time(row.started_at),
        "first_metric_at": _time(row.first_metric_at),
        "ended_at": _time(row.ended_at),
    }


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
        "created_at": _time(row.created_at),
        "present": present,
        "model": {"id": model.id, "name": model.name} if model else None,
        "download": f"/api/v1/runs/{row.run_id}/artifacts/{row.id}/download" if present else None,
    }


def progress(row: Run) -> dict[str, Any]:
    """`fraction` is of the whole run; `phase_done` of `phase_total` is what it does right now."""
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
        "eta_s": row.eta_s,
        "learner_device": row.learner_device,
        "sampler_device": row.sampler_device,
    }


def card(found: Card) -> dict[str, Any]:
    """A recipe and what a version holds for it."""
    needs = [
        {
            "count": each.need.count,
            "words": each.need.words,
            "train": each.train,
            "heldout": each.heldout,
            "left_out": [{"count": count, "words": words} for count, words in each.left_out],
        }
        for each in (found.fit.needs if found.fit else ())
    ]
    step_s = found.pace.step_s if found.pace else None
    return {"recipe": found.recipe.name, "fits": found.fit.ok if found.fit else None, "needs": needs, "step_s": step_s}


def experiment(row: Experiment, runs: int) -> dict[str, Any]:
    return {
        "id": row.id,
        "name": row.name,
        "description": row.description,
        "runs": runs,
        "created_at": _time(row.created_at),
    }


def log_line(row: LogLine) -> dict[str, Any]:
    """`seq` orders the lines and is the cursor of the log; lines of the server and of Ray have one too."""
    return {"seq": row.id, "time": _time(row.time), "step": row.step, "level": row.level, "message": row.message}


def people(found: Agreement | None) -> dict[str, Any]:
    """Of a run that asks nobody `share` is 0, and there is nothing else."""
    names = ("share", "drawn", "waiting", "left_out", "responses", "decided", "agreeing", "undecided")
    project = found.project if found else None
    return {name: getattr(found, name, 0) for name in names} | {
        "value": found.value if found else None,
        "low": found.low if found else None,
        "high": found.high if found else None,
        "project": {"id": project.pk, "name": project.name} if project else None,
    }


def graded(case: Case) -> dict[str, Any]:
    """A response that people grade as well, with both answers."""
    names = ("id", "step", "phase", "group", "index", "state", "problem")
    criteria = [
        {name: getattr(each, name) for name in ("id", "text", "judge", "people", "met", "not_met", "agree")}
        for each in case.criteria
    ]
    return {name: getattr(case.row, name) for name in names} | {
        "task": case.row.task_id,
        "example": case.example,
        "response": case.response,
        "criteria": criteria,
    }


def alarm(found: Alarm) -> dict[str, Any]:
    """An alarm with its words, its numbers and the places of its responses."""
    names = ("signal", "subject", "since", "share", "before", "paid", "part", "criterion")
    return {name: getattr(found.data, name) for name in names} | {
        "id": found.row.pk,
        "step": found.row.step,
        "time": _time(found.row.time),
        "title": found.title,
        "told": found.told,
        "responses": [
            {"group": each.group, "index": each.index, "response": each.text, "reward": each.reward}
            for each in found.examples
        ],
        "asked": found.asked,
        "left_out": found.left_out,
        "why": found.why,
    }


def reasons(run: Run) -> dict[str, Any]:
    """How far its matchers agree with people, and the judgement that waits, blind to what was found."""
    waiting = reason_matches.waiting(run)
    shown = waiting and {
        "judgement": waiting.address,
        "question": waiting.question,
        "human": waiting.human,
        "model": waiting.model,
    }
    items = [
        {"matcher": each.matcher, "judgements": each.judgements}
        | {name: getattr(each, name).json() for name in ("agree", "recall", "precision")}
        for each in reason_matches.agreements(run)
    ]
    return {"items": items, "waiting": shown}


def rollout(row: Rollout) -> dict[str, Any]:
    """The trainer's RolloutRecord with the place it has in the run."""
    return {"id": row.id, "step": row.step, **row.content}


def run_judge(row: RunJudge, known: Licence) -> dict[str, Any]:
    names = ("id", "calls", "failed", "tokens", "money", "budget_tokens", "budget_money", "problem")
    version = row.version
    return {name: getattr(row, name) for name in names} | {
        "judge": str(version),
        "licence": licence.as_json(known),
        "judge_id": version.judge_id,
        "version": version.number,
    }
