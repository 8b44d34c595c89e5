"""Carries a score out: called by a worker, for one answer on one worker at a time."""

import asyncio
from typing import Any

from trainer.contracts import Criterion, Message, Rubric, Verdict
from trainer.judges.budget import Budget
from trainer.judges.chat import EndpointProblem
from trainer.judges.combine import criterion_ratings, criterion_verdicts
from trainer.judges.inputs import JudgeInput
from trainer.rubrics import likert_score, verdicts
from webapp.core.background.jobs import failure
from webapp.core.problems import Problem
from webapp.inference import queries as registry
from webapp.inference.models import RegisteredModel
from webapp.inference.serving import process
from webapp.judging.asking.calls import judge_calls
from webapp.judging.verdicts import queries as verdict_queries
from webapp.usage.models import WorkKind
from webapp.usage.works import MeteredWork

from .models import TriedScore
from .scoring import CRITERIA, SCORE, ShownScore, State, by_rubric

ANSWER = "answer"


class CannotScore(Exception):
    """There is no score; the message says why."""


def score(pk: int) -> None:
    """Raises errors that the answer did not cause (database away): it stays open and is taken up again."""
    with SCORE.claimed(pk) as row:
        if row is not None:
            broken = failure(_score, row, known=(CannotScore, Problem, EndpointProblem))
            state = State.FINISHED if broken is None else State.FAILED
            SCORE.save(row, "result", state=state, problem=broken or "")


def _score(row: TriedScore) -> None:
    row.result = (_by_judge(row) if row.judge_version else _by_model(row)).json()


def _by_judge(row: TriedScore) -> ShownScore:
    """Verifiers decide what they can; the judge what is left. Its verdicts are in the store, under its version."""
    version = row.judge_version
    assert version is not None  # noqa: S101  its caller has looked
    criteria = tuple(Criterion.model_validate(each) for each in row.criteria)
    kind = version.judge.kind
    rubric = Rubric(criteria=criteria) if criteria else None
    given = list(verdicts(rubric, row.text)) if rubric and kind in CRITERIA else []
    open_ = {verdict.criterion_id for verdict in given if verdict.met is None}
    shown = tuple(each for each in criteria if each.id in open_) if kind in CRITERIA else criteria
    if kind in CRITERIA and rubric and not shown:
        return by_rubric(rubric, given)
    asked = JudgeInput(row.key, _messages(row), {ANSWER: row.text}, shown, row.reference)
    work = MeteredWork(row.workspace_id, WorkKind.TRIED, row.pk, row.created_by_id)
    counts = judge_calls(version, [asked], budget=Budget(tokens=row.tokens), used_by=work)
    answers = [answer for _, found in verdict_queries.answers(version, [asked]) for answer in found]
    if not any(answer.parsed is not None for answer in answers):
        said = next((answer.problem for answer in answers if answer.state != "uncalled" and answer.problem), "")
        raise CannotScore(counts.halted or said or next(iter(counts.unusable), "the judge was not asked"))
    found = _read(kind, rubric, given, answers)
    found.verdicts = [answer.verdict_id for answer in answers if answer.verdict_id]
    return found


def _read(
    kind: str, rubric: Rubric | None, given: list[Verdict], answers: list[verdict_queries.CallAnswer]
) -> ShownScore:
    if kind == "pointwise":
        ratings = [float(each.parsed["rating"]) for each in answers if each.parsed]
        words = next(str(each.parsed.get("explanation", "")) for each in answers if each.parsed)
        return ShownScore((sum(ratings) / len(ratings) - 1) / 9, "rating", words=words)
    assert rubric is not None  # noqa: S101  every other kind was refused without one
    if kind == "likert":
        return _likert(rubric, answers)
    said = {v.criterion_id: v for listed in criterion_verdicts(answers).values() for v in listed}
    return by_rubric(rubric, [said.get(v.criterion_id, v) if v.met is None else v for v in given])


def _likert(rubric: Rubric, answers: list[verdict_queries.CallAnswer]) -> ShownScore:
    ratings = next(iter(criterion_ratings(answers).values()), {})
    listed = [
        {"text": c.text, "points": c.points, "met": None, "note": _rated(ratings.get(c.id))} for c in rubric.criteria
    ]
    lost = sum(ratings.get(c.id) is None for c in rubric.criteria)
    weights = [c.points for c in rubric.criteria]
    why = "a criterion has no rating" if lost else "the points add up to 0 or less" if sum(weights) <= 0 else ""
    value = None if why else likert_score(weights, [ratings[c.id] or 0.0 for c in rubric.criteria])
    return ShownScore(value, "rating", why, missing=lost, criteria=listed)


def _rated(rating: float | None) -> str:
    return "no rating" if rating is None else f"{rating:g} of 10"


def _by_model(row: TriedScore) -> ShownScore:
    model: RegisteredModel | None = row.reward_model
    assert model is not None  # noqa: S101  a row has a judge or a model
    request = {"op": "score", "messages": row.messages, "answers": [row.text]}
    event = asyncio.run(_last(model, request))
    if event.get("event") != "done":
        raise CannotScore(str(event.get("message", process.ENDED)))
    value, why = event["scores"][0], event["problems"][0]
    return ShownScore(value, "reward", why)


async def _last(model: RegisteredModel, request: dict[str, Any]) -> dict[str, Any]:
    events = [
        event async for event in process.answers(registry.source(model), model.digest, request, model.workspace_id)
    ]
    return events[-1] if events else {}


def _messages(row: TriedScore) -> tuple[Message, ...]:
    return tuple(Message.model_validate(each) for each in row.messages)
