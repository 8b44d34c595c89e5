"""The only writer of the verdict store: it keeps one row per version and key, that of the first writer."""

import json
from collections import Counter
from collections.abc import Iterable
from decimal import Decimal
from functools import partial

from django.db import transaction

from trainer.judges.engine import Outcome
from webapp.core.database import prepared
from webapp.core.monitoring import telemetry
from webapp.usage.counters import CallUse

from ..models import JudgeVersion, Verdict

# A failed call says nothing of the judge, so a later outcome takes its place; every other row stays as it is. The rows come as
# one JSON document, not as a parameter per value: quoting a thousand of them took longer than making the calls.
_INSERT = """
WITH written AS (
INSERT INTO judging_verdict AS old (
    version_id, key, state, raw, parsed, problem, request, subject, prompt_tokens, cached_tokens, completion_tokens,
    cost, latency_ms, attempts, source, created_at
)
SELECT %s::bigint, new.key, new.state, new.raw, new.parsed, new.problem, new.request, new.subject, new.prompt_tokens,
    new.cached_tokens, new.completion_tokens, new.cost, new.latency_ms, new.attempts, %s::text, statement_timestamp()
FROM jsonb_to_recordset(%s::jsonb) AS new (
    key text, state text, raw text, parsed jsonb, problem text, request jsonb, subject jsonb, prompt_tokens integer,
    cached_tokens integer, completion_tokens integer, cost numeric, latency_ms integer, attempts smallint
)
ON CONFLICT (version_id, key) DO UPDATE SET
    state = EXCLUDED.state, raw = EXCLUDED.raw, parsed = EXCLUDED.parsed, problem = EXCLUDED.problem,
    request = EXCLUDED.request, subject = EXCLUDED.subject, prompt_tokens = EXCLUDED.prompt_tokens,
    cached_tokens = EXCLUDED.cached_tokens, completion_tokens = EXCLUDED.completion_tokens, cost = EXCLUDED.cost,
    latency_ms = EXCLUDED.latency_ms, attempts = EXCLUDED.attempts, source = EXCLUDED.source,
    created_at = EXCLUDED.created_at
WHERE old.state = 'failed'
RETURNING 1
)
SELECT count(*) FROM written
"""
COUNTED = "verdict_calls"  # by state, for those who operate the installation
_MOST_INTEGER, _MOST_SMALL = 2**31 - 1, 2**15 - 1
_MOST_MONEY = Decimal(999_999)


def store(version: JudgeVersion, outcomes: Iterable[Outcome], source: str = Verdict.Source.CALLED) -> int:
    """Stores outcomes, each key once, and returns how many rows that wrote. Concurrent writers do not store twice.

    Sorted by key, so that two writers of the same calls lock their rows in the same order and never deadlock.
    """
    unique = {outcome.call.key: outcome for outcome in outcomes}
    if not unique:
        return 0
    document = f"[{','.join(_row(unique[key]) for key in sorted(unique))}]"
    [(written,)] = prepared.rows(_INSERT, [version.pk, source, document])
    if source == Verdict.Source.CALLED:
        calls = Counter[str](outcome.state for outcome in unique.values())
        transaction.on_commit(partial(telemetry.count, COUNTED, calls))
    return int(written)


def _row(outcome: Outcome) -> str:
    call, reply = outcome.call, outcome.reply
    told = {
        "key": call.key,
        "state": outcome.state,
        "raw": outcome.raw,
        "parsed": outcome.parsed,
        "problem": outcome.problem,
        "subject": call.subject,
        **outcome_use(outcome),
        "cached_tokens": reply and _bounded(reply.cached_tokens),
        "attempts": min(reply.attempts, _MOST_SMALL) if reply else 0,
    }
    return f'{{"request":{call.record},{json.dumps(told, default=str, ensure_ascii=False)[1:]}'


def outcome_use(outcome: Outcome) -> dict[str, int | Decimal | None]:
    """The usage of a call, within what columns hold: endpoints report any number, and an absurd one must not lose the whole batch."""
    reply = outcome.reply
    return {
        "prompt_tokens": _bounded(reply.prompt_tokens) if reply else None,
        "completion_tokens": _bounded(reply.completion_tokens) if reply else None,
        "cost": None if outcome.cost is None else min(outcome.cost, _MOST_MONEY),
        "latency_ms": _bounded(round(1000 * reply.latency_s)) if reply else None,
    }


def use(outcomes: Iterable[Outcome]) -> CallUse:
    """The usage of the answered calls, for the ledger; calls that nobody answered used nothing."""
    found = [outcome_use(each) for each in outcomes if each.reply is not None]
    costs = [each["cost"] for each in found if each["cost"] is not None]
    return CallUse(
        calls=len(found),
        prompt_tokens=sum(int(each["prompt_tokens"] or 0) for each in found),
        completion_tokens=sum(int(each["completion_tokens"] or 0) for each in found),
        money=sum((Decimal(cost) for cost in costs), Decimal(0)),
        untold=sum(each["prompt_tokens"] is None or each["completion_tokens"] is None for each in found),
        unpriced=len(found) - len(costs),
    )


def _bounded(count: int | None) -> int | None:
    return None if count is None or not 0 <= count <= _MOST_INTEGER else count
