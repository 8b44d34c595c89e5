"""Answers of the API about verdicts."""

from datetime import datetime
from decimal import Decimal
from typing import Any

from ninja import Schema


class VerdictRow(Schema):
    id: int
    key: str
    state: str
    subject: dict[str, Any]
    parsed: dict[str, Any] | None
    problem: str
    source: str
    created_at: datetime


class VerdictOut(VerdictRow):
    """`request` is what was sent, `raw` what came back. Tokens add up over `attempts`; cost is None without prices."""

    version_id: int
    request: dict[str, Any] | None
    raw: str
    prompt_tokens: int | None
    cached_tokens: int | None
    completion_tokens: int | None
    cost: Decimal | None
    latency_ms: int | None
    attempts: int


class VerdictList(Schema):
    items: list[VerdictRow]
    next: str | None
