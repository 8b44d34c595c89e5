"""Verdicts of judges that answer in the run's own process, beside their weights: they belong to the verdict store all the same."""

import json
from collections.abc import Iterable
from decimal import Decimal

from django.db import transaction
from django.db.models import F

from trainer.contracts import KnownVerdicts, OwnVerdict, OwnVerdicts
from trainer.judges.calls import Call, key_of
from trainer.judges.chat import ChatReply, ChatRequest, cost
from trainer.judges.engine import Outcome
from trainer.judges.spec import BaseSpec
from webapp.core.problems import Conflict, Invalid
from webapp.inference.models import Endpoint
from webapp.judging import queries, services
from webapp.judging.models import JudgeVersion
from webapp.judging.services import asked as target_of

from . import broadcasts, questions
from .models import Run, RunJudge


def exchange(run: Run, told: OwnVerdicts) -> KnownVerdicts:
    """Stores what is new and answers what is asked for. Raises Conflict once the run is over, Invalid at the field."""
    if run.is_over:
        raise Conflict("This run is over.", code="over")
    row = questions.judge_row(run, told.judge)
    version = row.version
    if version.endpoint.kind != Endpoint.Kind.LOCAL:
        raise Invalid("This judge does not answer in the run.", {"judge": f"{version} is asked by this server"})
    if told.verdicts:
        _store(row, list(_outcomes(version, told.verdicts)))
        broadcasts.judges(run.pk)
    row.refresh_from_db()
    money = row.budget_money
    return KnownVerdicts(
        answers=questions.answers(version, told.keys),
        budget_tokens=row.budget_tokens,
        budget_money=None if money is None else str(money),
        tokens=row.tokens,
        money=str(row.money),
    )


def _store(row: RunJudge, outcomes: list[Outcome]) -> None:
    """What the calls took is counted with the verdict that it brought: once, whoever sends it again."""
    with transaction.atomic():
        RunJudge.objects.select_for_update(no_key=True).get(pk=row.pk)
        there = queries.stored_keys(row.version, [outcome.call.key for outcome in outcomes])
        new = {outcome.call.key: outcome for outcome in outcomes if outcome.call.key not in there}.values()
        services.store(row.version, new)
        RunJudge.objects.filter(pk=row.pk).update(
            calls=F("calls") + len(new),
            tokens=F("tokens") + sum(_tokens(outcome) for outcome in new),
            money=F("money") + sum((outcome.cost or Decimal(0) for outcome in new), Decimal(0)),
        )


def _tokens(outcome: Outcome) -> int:
    reply = outcome.reply
    return (reply.prompt_tokens or 0) + (reply.completion_tokens or 0) if reply else 0


def _outcomes(version: JudgeVersion, verdicts: Iterable[OwnVerdict]) -> Iterable[Outcome]:
    spec, target = version.resolved, target_of(version.endpoint, version.resolved)
    for place, told in enumerate(verdicts):
        counts = (told.prompt_tokens, told.cached_tokens, told.completion_tokens)
        reply = ChatReply(told.raw, "stop", *counts, told.latency_s, told.attempts)
        call = Call(told.key, _request(version, spec, told, f"verdicts.{place}"), dict(told.subject), told.record)
        money = cost(reply, target.prices) if target else None
        yield Outcome(call, told.state, told.parsed, told.raw, told.problem, reply, money)


def _request(version: JudgeVersion, spec: BaseSpec, told: OwnVerdict, where: str) -> ChatRequest:
    """The question, whose address the key must be: else a verdict could stand under the key of another one."""
    sample = told.subject.get("sample", 0)
    if not isinstance(sample, int) or told.key != key_of(version.digest, told.record, sample):
        raise Invalid("A verdict is not that of its question.", {f"{where}.key": "is not the address of its question"})
    try:
        asked = json.loads(told.record)
        return ChatRequest(tuple(asked["messages"]), spec.sampling, None, asked["seed"])
    except (ValueError, KeyError, TypeError):
        raise Invalid("A verdict has no question.", {f"{where}.record": "is no request"}) from None
