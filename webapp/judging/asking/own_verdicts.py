"""Verdicts that come from a process with the judge's weights: a run with its own judge, or a job of the cluster."""

import json
from collections.abc import Iterable, Iterator
from decimal import Decimal

from trainer.contracts import OwnVerdict
from trainer.judges.calls import Call, key_of
from trainer.judges.chat import CODES, ChatReply, ChatRequest, EndpointProblem, cost
from trainer.judges.engine import Outcome
from trainer.judges.sampling import Sampling
from webapp.core.problems import Invalid
from webapp.inference.endpoints.targets import prices

from ..models import JudgeVersion


def outcomes(version: JudgeVersion, told: Iterable[OwnVerdict]) -> Iterator[Outcome]:
    """The verdicts as outcomes of calls. Raises Invalid at a verdict whose key is not the address of its question."""
    table, sampling = prices(version.endpoint), version.resolved.sampling
    for place, each in enumerate(told):
        call = Call(each.key, _request(version, sampling, each, f"verdicts.{place}"), dict(each.subject), each.record)
        if each.state == "failed":
            yield Outcome(call, "failed", None, "", each.problem, None, None, _trouble(each.problem))
            continue
        counts = (each.prompt_tokens, each.cached_tokens, each.completion_tokens)
        reply = ChatReply(each.raw, "stop", *counts, each.latency_s, each.attempts)
        yield Outcome(call, each.state, each.parsed, each.raw, each.problem, reply, cost(reply, table))


def usage_of_calls(found: Iterable[Outcome]) -> tuple[int, Decimal]:
    """The tokens and the money that the calls took, as far as they are known."""
    tokens, money = 0, Decimal(0)
    for each in found:
        if each.reply:
            tokens += (each.reply.prompt_tokens or 0) + (each.reply.completion_tokens or 0)
        money += each.cost or Decimal(0)
    return tokens, money


def _request(version: JudgeVersion, sampling: Sampling, told: OwnVerdict, where: str) -> ChatRequest:
    """The question of a verdict. The key must be its address: a verdict must not stand under the key of another question."""
    sample = told.subject.get("sample", 0)
    if not isinstance(sample, int) or told.key != key_of(version.digest, told.record, sample):
        raise Invalid(
            "A verdict does not belong to its question.", {f"{where}.key": "is not the address of its question"}
        )
    try:
        asked = json.loads(told.record)
        return ChatRequest(tuple(asked["messages"]), sampling, None, asked["seed"])
    except (ValueError, KeyError, TypeError):
        raise Invalid("A verdict has no question.", {f"{where}.record": "is not a request"}) from None


def _trouble(problem: str) -> EndpointProblem | None:
    said, _, message = problem.partition(": ")
    return next((EndpointProblem(code, message) for code in CODES if code == said), None)
