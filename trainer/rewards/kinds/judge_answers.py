"""The answers of judges for parts of rewards: what they cost, whether a judge was away, and how they are shown."""

from collections.abc import Sequence
from typing import Any

from ..parts import Part, RewardAnswer, Usage


def usage_of(said: Sequence[RewardAnswer]) -> Usage:
    found = Usage()
    for answer in said:
        found = found.plus(answer.usage)
    return found


def away_reason(said: Sequence[RewardAnswer]) -> str:
    """The reason why the judge could not be asked; empty if it could."""
    return next((answer.problem for answer in said if answer.away), "")


def finished(part: Part, said: Sequence[RewardAnswer]) -> Part:
    """The part without a value, if one of the questions could not be asked: else an outage would decide which votes count."""
    why = away_reason(said)
    return part._replace(value=None, away=True, why=why) if why else part


def problem_of(said: Sequence[RewardAnswer]) -> str:
    """The problem of the first answer that cannot be used."""
    return next((answer.problem for answer in said if answer.problem), "no verdict")


def explained(said: Sequence[RewardAnswer]) -> str:
    """The first explanation; empty if there is none."""
    found = (str(answer.parsed.get("explanation", "")) for answer in said if answer.parsed is not None)
    return next(filter(None, found), "")


def told(said: Sequence[RewardAnswer]) -> list[dict[str, Any]]:
    """The answers as the rollout viewer shows them."""
    return [
        {
            "order": answer.subject.get("order", ""),
            "parsed": answer.parsed,
            "problem": answer.problem,
            "raw": "" if answer.parsed is not None else answer.raw,
            "cost": answer.cost,
        }
        for answer in said
    ]
