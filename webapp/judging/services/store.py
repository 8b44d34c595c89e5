"""The verdict store's only writer: one row per version and key, whoever comes first."""

import json
from collections.abc import Iterable
from decimal import Decimal
from typing import Any

from django.db import connection

from trainer.judges.engine import Outcome
from webapp.judging.models import JudgeVersion, Verdict

# A failed call says nothing of the judge, so a later outcome takes its place; every other row stays as it is. The rows
# travel as one JSON document: arrays of texts cost the client four times as much, since each element is quoted twice.
_INSERT = """
INSERT INTO judging_verdict AS old (
    version_id, source, created_at, key, state, raw, parsed, problem, request, subject, prompt_tokens, cached_tokens,
    completion_tokens, cost, latency_ms, attempts
)
SELECT %s, %s, statement_timestamp(), key, state, raw, parsed::jsonb, problem, request::jsonb, subject::jsonb,
    prompt_tokens, cached_tokens, completion_tokens, cost, latency_ms, attempts
FROM json_to_recordset(%s::json) AS new (
    key text, state text, raw text, parsed text, problem text, request text, subject text, prompt_tokens integer,
    cached_tokens integer, completion_tokens integer, cost numeric, latency_ms integer, attempts smallint
)
ON CONFLICT (version_id, key) DO UPDATE SET
    state = EXCLUDED.state, raw = EXCLUDED.raw, parsed = EXCLUDED.parsed, problem = EXCLUDED.problem,
    request = EXCLUDED.request, subject = EXCLUDED.subject, prompt_tokens = EXCLUDED.prompt_tokens,
    cached_tokens = EXCLUDED.cached_tokens, completion_tokens = EXCLUDED.completion_tokens, cost = EXCLUDED.cost,
    latency_ms = EXCLUDED.latency_ms, attempts = EXCLUDED.attempts, source = EXCLUDED.source,
    created_at = EXCLUDED.created_at
WHERE old.state = 'failed'
"""
_MOST_INTEGER, _MOST_SMALL = 2**31 - 1, 2**15 - 1


def store(version: JudgeVersion, outcomes: Iterable[Outcome], source: str = Verdict.Source.CALLED) -> int:
    """Stores outcomes, each key once, and returns how many rows that wrote. Concurrent writers do not store twice.

    Sorted by key, so that two writers of the same calls lock their rows in the same order and never deadlock.
    """
    unique = {outcome.call.key: outcome for outcome in outcomes}
    if not unique:
        return 0
    rows = json.dumps([_row(unique[key]) for key in sorted(unique)], ensure_ascii=False)
    with connection.cursor() as cursor:
        cursor.execute(_INSERT, [version.pk, source, rows])
        return int(cursor.rowcount)


def _row(outcome: Outcome) -> dict[str, Any]:
    call, reply = outcome.call, outcome.reply
    return {
        "key": call.key,
        "state": outcome.state,
        "raw": outcome.raw,
        "parsed": None if outcome.parsed is None else json.dumps(outcome.parsed, ensure_ascii=False),
        "problem": outcome.problem,
        "request": call.record,
        "subject": json.dumps(call.subject, ensure_ascii=False),
        "prompt_tokens": reply and _bounded(reply.prompt_tokens),
        "cached_tokens": reply and _bounded(reply.cached_tokens),
        "completion_tokens": reply and _bounded(reply.completion_tokens),
        "cost": None if outcome.cost is None else str(min(outcome.cost, Decimal(999_999))),
        "latency_ms": reply and _bounded(round(1000 * reply.latency_s)),
        "attempts": min(reply.attempts, _MOST_SMALL) if reply else 0,
    }


def _bounded(count: int | None) -> int | None:
    """Endpoints report what they like; an absurd count must not cost a batch of verdicts."""
    return None if count is None or not 0 <= count <= _MOST_INTEGER else count
