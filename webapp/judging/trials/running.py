"""Carries out trials. One worker at a time has a trial."""

import json
from collections import Counter
from datetime import timedelta
from itertools import islice
from typing import Any

from django.utils import timezone

from trainer.judges.budget import Budget
from trainer.judges.calls import Call
from trainer.judges.chat import EndpointProblem
from trainer.judges.engine import Outcome
from trainer.judges.inputs import JudgeInput, of_example
from trainer.judges.spec import KINDS, resolve
from webapp.core import broadcast
from webapp.core.background.jobs import failure
from webapp.core.problems import Problem
from webapp.datasets.models import Example
from webapp.usage import counters
from webapp.usage.models import WorkKind
from webapp.usage.works import MeteredWork

from ..asking.calls import CallCounts, call, expanded, judge_calls, replay, target_of
from ..judges.services import version_digest
from ..models import Trial
from ..verdicts.store import use
from .changes import changes
from .services import TRIAL, Extra

MOST_CALLS = 200  # of a draft
MOST_TOKENS = 1_000_000  # of a draft
TELL_EVERY = timedelta(seconds=1)  # open pages then load the trial


def run_trial(trial_id: int) -> None:
    """Raises errors that are not the trial's fault (no database): it stays running, and a worker takes it up again."""
    with TRIAL.claimed(trial_id, done=0, results={}) as trial:
        if trial is None:
            return
        _tell(trial)
        broken = failure(_tried, trial, known=(Problem, EndpointProblem)) or trial.problem
        state = Trial.State.FAILED if broken else Trial.State.FINISHED
        _save(trial, state=state, problem=broken, finished_at=timezone.now())


def _tried(trial: Trial) -> None:
    """Runs the trial, and stores in `problem` why it ended early."""
    trial.problem = _draft(trial) if trial.spec is not None else _comparison(trial)


def _save(trial: Trial, **end: object) -> None:
    TRIAL.save(trial, "done", "total", "results", **end)
    _tell(trial)


def _tell(trial: Trial) -> None:
    if trial.finished_at or timezone.now() - trial.told_at >= TELL_EVERY:
        trial.told_at = timezone.now()
        message: dict[str, object] = {"type": "trial", "id": trial.pk, "state": trial.state}
        broadcast.send(f"workspace.{trial.workspace_id}", message)


def _inputs(trial: Trial, kind: str) -> list[JudgeInput]:
    """The chosen examples that still exist, in the order they were chosen."""
    rows = Example.objects.in_bulk(trial.examples)
    extra = Extra.model_validate(trial.extra)
    inputs = [of_example(rows[each].record, pair=KINDS[kind].pair) for each in trial.examples if each in rows]
    return [
        _with(given, extra, row_id)
        for given, row_id in zip(inputs, (e for e in trial.examples if e in rows), strict=True)
    ]


def _with(given: JudgeInput, extra: Extra, example_id: int) -> JudgeInput:
    more: dict[str, Any] = {"generated": tuple(extra.generated), "model_reasons": tuple(extra.model_reasons)}
    if extra.rationale:
        more["rationale"] = extra.rationale
    return JudgeInput(**{**vars(given), **more, "verdict": extra.verdict, "subject": {"example_id": example_id}})


def _draft(trial: Trial) -> str:
    """Runs every call of the draft, none of which enters the verdict store. Returns why it ended early, or ""."""
    assert trial.spec is not None and trial.endpoint is not None  # noqa: S101  # a draft has both
    spec, endpoint = resolve(trial.spec), trial.endpoint
    unusable: Counter[str] = Counter()
    calls = list(
        islice(
            expanded(spec, version_digest(spec, trial.endpoint), _inputs(trial, spec.kind), unusable), MOST_CALLS + 1
        )
    )
    cut = len(calls) > MOST_CALLS
    calls = calls[:MOST_CALLS]
    distinct: dict[str, Call] = {each.key: each for each in calls}  # two responses that are the same are one question
    trial.total = len(distinct)
    trial.results = {"calls": [], "unusable": dict(unusable), "cut": cut}
    order = {each.key: place for place, each in enumerate(calls)}

    def keep(outcomes: list[Outcome]) -> None:
        # before they are shown: a trial whose worker dies here makes its calls again, and they are paid for again
        counters.count(_work(trial), endpoint.pk, use(outcomes))
        listed = trial.results["calls"]
        listed.extend(_told(outcome, order[outcome.call.key]) for outcome in outcomes)
        listed.sort(key=lambda each: each["place"])
        trial.done = len(listed)
        _save(trial)

    target = target_of(trial.endpoint, spec)
    if target is None:
        return replay(trial.endpoint, spec, distinct.values(), keep, lambda: False)
    return call(trial.endpoint, target, spec, distinct.values(), keep, lambda: False, Budget(tokens=MOST_TOKENS)).halted


def _work(trial: Trial) -> MeteredWork:
    return MeteredWork(trial.workspace_id, WorkKind.TRIAL, trial.pk, trial.created_by_id)


def _told(outcome: Outcome, place: int) -> dict[str, Any]:
    reply = outcome.reply
    return {
        "place": place,
        "subject": outcome.subject,
        "messages": json.loads(outcome.call.record)["messages"],
        "state": outcome.state,
        "raw": outcome.raw,
        "parsed": outcome.parsed,
        "problem": outcome.problem,
        "latency_ms": reply and round(1000 * reply.latency_s),
        "prompt_tokens": reply and reply.prompt_tokens,
        "completion_tokens": reply and reply.completion_tokens,
        "attempts": reply.attempts if reply else 0,
        "cost": None if outcome.cost is None else str(outcome.cost),
    }


def _comparison(trial: Trial) -> str:
    """Has both versions judge the fixed examples, through the verdict store, and lists what changed."""
    before, after = trial.before, trial.after
    assert before is not None and after is not None  # noqa: S101  # a database row without a spec has both
    inputs = _inputs(trial, before.judge.kind)
    halted, finished = "", 0
    for version in (before, after):

        def progress(counts: CallCounts, finished: int = finished) -> None:
            trial.done = finished + counts.stored + counts.done + counts.missing + counts.failed
            trial.total = finished + counts.total
            _save(trial)

        budget = Budget(tokens=MOST_TOKENS)
        counts = judge_calls(version, inputs, budget=budget, progress=progress, used_by=_work(trial))
        finished += counts.total
        halted = halted or counts.halted
    trial.results = changes(before, after, inputs)
    return halted
