"""A verifier is a named deterministic program that says whether a text meets a stated condition."""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, Self

from pydantic import BaseModel, ConfigDict, Field, model_validator


class VerifierError(ValueError):
    """A verifier spec that cannot be run: `field` is `name` or a dotted path such as `args.min`."""

    def __init__(self, field: str, message: str) -> None:
        self.field = field
        self.message = message
        super().__init__(f"{field}: {message}")


class Args(BaseModel):
    """The base of every verifier's arguments: unknown keys and wrong types are errors."""

    model_config = ConfigDict(extra="forbid", frozen=True, strict=True)


class Bounds(Args):
    """A count's bounds: `exactly`, or `min` and `max` (both inclusive, either alone)."""

    min: int | None = Field(None, ge=0, le=1_000_000, description="At least this many")
    max: int | None = Field(None, ge=0, le=1_000_000, description="At most this many")
    exactly: int | None = Field(None, ge=0, le=1_000_000, description="This many, no more and no fewer")

    @model_validator(mode="after")
    def _says_how_many(self) -> Self:
        if self.exactly is not None and (self.min is not None or self.max is not None):
            raise ValueError("give either exactly, or min and max")
        if self.exactly is None and self.min is None and self.max is None:
            raise ValueError("give min, max or exactly")
        if self.min is not None and self.max is not None and self.min > self.max:
            raise ValueError(f"min {self.min} is larger than max {self.max}")
        return self

    def judge(self, count: int, noun: str) -> "Finding":
        """Whether `count` lies within the bounds; the note says the count that was found and the bounds."""
        if self.exactly is not None:
            met, wanted = count == self.exactly, f"exactly {self.exactly}"
        else:
            met = (self.min is None or count >= self.min) and (self.max is None or count <= self.max)
            parts = ((self.min, "at least"), (self.max, "at most"))
            wanted = ", ".join(f"{label} {bound}" for bound, label in parts if bound is not None)
        return Finding(met, f"{count} {noun}{'' if count == 1 else 's'}; asked: {wanted}")


@dataclass(frozen=True)
class Finding:
    """The answer of a verifier. `met` is None only if there was no answer in time; `note` says what the verifier found."""

    met: bool | None
    note: str


@dataclass(frozen=True)
class VerifierExample:
    """An example that the product shows and a test runs."""

    text: str
    args: dict[str, Any]
    met: bool


@dataclass(frozen=True)
class Verifier:
    """One entry of the registry. `check` raises for no text, and takes time linear in the text's length."""

    name: str
    title: str
    help: str
    args: type[Args]
    check: Callable[[str, Any], Finding]
    examples: tuple[VerifierExample, ...]
