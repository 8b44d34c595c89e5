"""Rollouts as the examples that people are asked about: the prompt, the rubric where one is needed, and one response or several.

An example says in `meta.rollouts` which rollouts it holds. Its key is made of their places and texts, so the same rollouts are the same
example, and a response that a resumed run has sampled again is another one.
"""

import hashlib
from collections.abc import Mapping, Sequence
from typing import Any, Literal

from pydantic import ValidationError

from trainer.contracts import Criterion, Example, Message, Response, RolloutRecord, RolloutTurn, Rubric, TraceStep
from trainer.contracts.trace import as_text
from webapp.annotation import kinds

from ..models import Rollout, Run

SOURCE = "rollout"
"""`source` of such an example."""
META = "rollouts"
Shape = Literal["single", "pair", "group"]
SHAPES: Mapping[str, Shape] = {
    "pairwise": "pair",
    "grading": "single",
    "ranking": "group",
    "rating": "single",
    "best_worst": "group",
    "trace_steps": "single",
}
"""The kinds of task that people can be given about rollouts, and what one example of each holds."""
TOKENS = {"tokens", "logprobs", "ratios", "mask", "stretches", "spans"}
_ID = "response-"


class CannotAsk(Exception):
    """Raised if no example of the kind can be made of these rollouts; the message says why, of "it"."""


def key_start(run_id: int, phase: str, step: int | None = None) -> str:
    """The prefix of the keys of the examples of a run, or of a step."""
    return f"run-{run_id}-{phase}-" + ("" if step is None else f"{step}-")


def example(run: Run, kind: str, rows: Sequence[Rollout], known: Example | None) -> Example:
    """The example of these rollouts of one group. `known` is the example of the data that has their prompt. Raises CannotAsk."""
    rows = sorted(rows, key=lambda row: row.index)
    records = [_record(row) for row in rows]
    if any(record.turns_apart for record in records):
        raise CannotAsk("it is an episode that is too large to be judged as a whole")
    responses = [_response(run, record) for record in records]
    if len({each.text for each in responses}) < len(responses):
        raise CannotAsk("its responses have the same text")
    first = rows[0]
    try:
        made = Example(
            key=_key(run, kind, first, rows, responses),
            prompt=known.prompt if known else (Message(role="user", content=records[0].prompt),),
            split=known.split if known else None,
            group=known.group if known else "",
            domain=known.domain if known else "",
            source=SOURCE,
            rubric=_rubric(records[0], known) if kinds.get_kind(kind).by_rubric else None,
            responses=tuple(responses),
            reference=known.reference if known else None,
            meta={META: [place(row) for row in rows]},
        )
    except ValidationError as error:
        raise CannotAsk(error.errors(include_url=False)[0]["msg"]) from None
    if not kinds.get_kind(kind).subjects(made.model_dump(mode="json")):
        raise CannotAsk(_lacking(kind, made))
    return made


def _record(row: Rollout) -> RolloutRecord:
    """The record of a rollout without its tokens, which are most of it."""
    return RolloutRecord.model_validate({name: value for name, value in row.content.items() if name not in TOKENS})


def place(row: Rollout) -> dict[str, Any]:
    return {"run": row.run_id, **{name: getattr(row, name) for name in ("step", "phase", "group", "index")}}


def _key(run: Run, kind: str, first: Rollout, rows: Sequence[Rollout], responses: Sequence[Response]) -> str:
    rubric = "rubric" if kinds.get_kind(kind).by_rubric else ""  # with and without one they are two contents
    parts = [SHAPES[kind], rubric, *(f"{row.index}:{each.text}" for row, each in zip(rows, responses, strict=True))]
    digest = hashlib.sha256("\0".join(parts).encode()).hexdigest()[:12]
    return f"{key_start(run.pk, first.phase, first.step)}{first.group}-{digest}"


def _response(run: Run, record: RolloutRecord) -> Response:
    steps = trace(record)
    text = as_text(steps) if steps else record.response
    return Response(id=f"{_ID}{record.index + 1}", text=text, origin=f"run {run.pk}", steps=steps)


def trace(record: RolloutRecord) -> tuple[TraceStep, ...]:
    """The turns of an episode as steps: the policy is the agent, and the environment speaks as the user or as a tool."""
    return tuple(step(turn) for turn in record.turns)


def step(turn: RolloutTurn) -> TraceStep:
    role: Literal["assistant", "tool", "user"] = "tool" if turn.kind == "result" else "user"
    if turn.author == "policy":
        role = "assistant"
    told = turn.model_dump(include={"kind", "text", "tool", "call", "failed"})
    return TraceStep(role=role, **told)


def _rubric(record: RolloutRecord, known: Example | None) -> Rubric:
    """The rubric of the data, else the criteria by which the response was scored. Raises CannotAsk."""
    if known and known.rubric:
        return known.rubric
    found = tuple(
        Criterion(
            id=each.verdict.criterion_id,
            text=each.text,
            points=each.points,
            kind="hard" if each.kind == "hard" else "principle",
        )
        for each in record.criteria
    )
    if not found:
        raise CannotAsk("its prompt has no rubric")
    return Rubric(criteria=found)


def _lacking(kind: str, made: Example) -> str:
    if kind == "trace_steps":
        return "it is not an episode with turns" if not made.responses[0].steps else "it has too many steps to judge"
    return f"{kinds.get_kind(kind).title.lower()} needs at least two responses to a prompt"
