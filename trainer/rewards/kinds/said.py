"""What judges said, as parts of rewards need it: what it took, whether anybody was away, and how it is shown."""

from collections.abc import Sequence
from typing import Any

from ..parts import Answer, Part, Usage


def usage_of(said: Sequence[Answer]) -> Usage:
    found = Usage()
    for answer in said:
        found = found.plus(answer.usage)
    return found


def away(said: Sequence[Answer]) -> str:
    """Why the judge could not be asked; empty if it could."""
    return next((answer.problem for answer in said if answer.away), "")


def finished(part: Part, said: Sequence[Answer]) -> Part:
    """Without a value while one of the questions could not be asked: else an outage would decide which votes count."""
    why = away(said)
    return part._replace(value=None, away=True, why=why) if why else part


def problem_of(said: Sequence[Answer]) -> str:
    """What is wrong with the first answer that cannot be used."""
    return next((answer.problem for answer in said if answer.problem), "no verdict")


def explained(said: Sequence[Answer]) -> str:
    """The first explanation that was given; empty if none was."""
    found = (str(answer.parsed.get("explanation", "")) for answer in said if answer.parsed is not None)
    return next(filter(None, found), "")


def told(said: Sequence[Answer]) -> list[dict[str, Any]]:
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
