"""The one shape of a dataset row, shared by import, annotation, export and training."""

import hashlib
import json
from pathlib import Path
from typing import Any, Literal, Self

from pydantic import Field, model_validator

from .base import Record
from .rubric import Rubric
from .trace import TraceStep

_CANONICAL = json.JSONEncoder(ensure_ascii=False, allow_nan=False, sort_keys=True, separators=(",", ":"))
Role = Literal["system", "user", "assistant", "tool"]
Split = Literal["train", "heldout"]


class Message(Record):
    role: Role
    content: str


class Response(Record):
    """A candidate answer. `origin` names the model or person that wrote it; annotators never see it.

    If the answer is an agent's trace, `steps` holds its steps, and `text` the same steps as one text.
    """

    id: str = Field(min_length=1, max_length=64)
    text: str
    origin: str = ""
    tags: tuple[str, ...] = ()
    steps: tuple[TraceStep, ...] = ()


class Reason(Record):
    """One atomic reason for a preference, optionally tied to characters `start..end` of a response."""

    text: str = Field(min_length=1)
    response: str | None = None
    start: int | None = Field(default=None, ge=0)
    end: int | None = Field(default=None, ge=0)

    @model_validator(mode="after")
    def _span_is_whole(self) -> Self:
        if (self.start is None) != (self.end is None):
            raise ValueError("a span needs both start and end")
        if self.start is not None and (self.response is None or self.end is None or self.end <= self.start):
            raise ValueError("a span needs a response and start < end")
        return self


class Preference(Record):
    """A judgement of responses `a` and `b`: strength -3 (a much better) .. 0 (tie) .. 3 (b much better).

    `strength` is None when the rater could not decide; `verdict` then says why.
    """

    a: str
    b: str
    strength: int | None = Field(default=None, ge=-3, le=3)
    verdict: Literal["compared", "both_bad", "cannot_assess"] = "compared"
    rater: str = ""
    reasons: tuple[Reason, ...] = ()

    @model_validator(mode="after")
    def _strength_iff_compared(self) -> Self:
        if self.a == self.b:
            raise ValueError("a preference compares two different responses")
        if self.verdict == "compared" and self.strength is None:
            raise ValueError("a compared pair needs a strength from -3 to 3")
        if self.verdict == "cannot_assess" and self.strength is not None:
            raise ValueError("a pair that cannot be assessed has no strength")
        return self


class Example(Record):
    """One row: a prompt and all that is known about it. `key` is stable across versions of a dataset.

    Examples of one `group` (a topic, a document, an author) are on the same side of the split; without a group, examples with the same
    prompt are.
    """

    key: str = Field(min_length=1, max_length=200)
    prompt: tuple[Message, ...] = Field(min_length=1)
    split: Split | None = None
    group: str = ""
    domain: str = ""
    source: str = ""
    tags: tuple[str, ...] = ()
    rubric: Rubric | None = None
    responses: tuple[Response, ...] = ()
    preferences: tuple[Preference, ...] = ()
    reference: str | None = None
    meta: dict[str, Any] = Field(default_factory=dict)

    @model_validator(mode="after")
    def _references_resolve(self) -> Self:
        ids = [response.id for response in self.responses]
        if len(set(ids)) != len(ids):
            raise ValueError("response ids must be unique within an example")
        for preference in self.preferences:
            for side in (preference.a, preference.b):
                if side not in ids:
                    raise ValueError(f"preference names response {side!r}, which this example does not have")
        return self

    def canonical(self) -> str:
        """JSON with sorted keys and without defaults: equal examples give equal text. Raises ValueError for an infinite number in `meta`:
        JSON cannot write it, and null would lose it silently."""
        data = self.model_dump(mode="python", exclude_defaults=True)
        return _CANONICAL.encode(data)

    def digest(self) -> str:
        """SHA-256 of the canonical form, hexadecimal."""
        return self.digest_of(self.canonical())

    @staticmethod
    def digest_of(canonical: str | bytes) -> str:
        """The digest of a canonical form, given as text or as its bytes in UTF-8."""
        return hashlib.sha256(canonical if isinstance(canonical, bytes) else canonical.encode()).hexdigest()


def version_digest(path: Path) -> str:
    """The digest of a frozen dataset version: SHA-256 over the sorted digests of its lines, a newline after each."""
    with path.open("rb") as lines:
        digests = sorted(hashlib.sha256(line.rstrip(b"\n")).hexdigest() for line in lines)
    return hashlib.sha256("".join(digest + "\n" for digest in digests).encode()).hexdigest()
