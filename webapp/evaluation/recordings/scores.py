"""Files of recorded scores: what reward models gave to the responses of a dataset.

One JSON object a line: {"model": "rm-a", "example": "chat-7", "response": "chosen_concise", "score": 1.25}. `example` is the
key of an example, `response` the id of one of its responses; a score of null is missing.
"""

import hashlib
import json
from collections.abc import Iterable, Iterator
from sys import float_info
from typing import Any, NamedTuple

from webapp.judging.lines.fields import LineProblem, fields, name

FIELDS = ("model", "example", "response", "score")


class RecordedScore(NamedTuple):
    model: str
    example: str
    response: str
    score: float | None


def holds_scores(content: bytes) -> bool:
    """Whether the first line is one of scores: recorded verdicts have other fields."""
    first = next((line for line in content.removeprefix(b"\xef\xbb\xbf").split(b"\n") if line.strip()), b"")
    try:
        row = json.loads(first)
    except (ValueError, RecursionError):
        return False
    return isinstance(row, dict) and {"response", "score"} <= row.keys()


def parse(row: Any) -> RecordedScore:
    """Raises LineProblem."""
    row = fields(row, ", ".join(FIELDS))
    score = row.get("score")
    if "score" not in row:
        raise LineProblem("score", "is missing; write null if the response has none")
    if score is not None and (isinstance(score, bool) or not isinstance(score, int | float)):
        raise LineProblem("score", f"expected a number or null, found {score!r:.60}")
    if score is not None and not abs(score) <= float_info.max:  # a whole number may be larger
        raise LineProblem("score", "is not finite, or too large")
    return RecordedScore(name(row, "model"), name(row, "example"), name(row, "response"), score)


def repeated(scores: Iterable[tuple[int, RecordedScore]]) -> Iterator[tuple[int, str]]:
    """(line, problem) of every response that its model had scored before."""
    seen: dict[tuple[str, str, str], int] = {}
    for line, score in scores:
        first = seen.setdefault(score[:3], line)
        if first != line:
            yield line, f"{score.model!r} scored {score.response!r} of {score.example!r} already on line {first}"


def digest(scores: Iterable[RecordedScore]) -> str:
    """A digest of the scored responses."""
    return hashlib.sha256(json.dumps(sorted({score[1:3] for score in scores})).encode()).hexdigest()
