"""The rule that gives an example its side: train or held out."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import cast

from trainer.contracts import Example
from trainer.contracts.example import Split

from .digests import side
from .importers import RowProblem


@dataclass(frozen=True)
class Rule:
    """A key that has a side in an earlier version keeps it; a new key without one is drawn by `share` of held-out
    examples, or left without one where `share` is None. `as_given` takes what the rows say, nothing included, and only
    refuses contradictions."""

    share: float | None
    as_given: bool = False

    def decide(self, line: int, example: Example, before: Mapping[str, str]) -> Split | None | RowProblem:
        """The side of one example, None for none, or why its own split cannot stand."""
        had = before.get(example.key)
        if example.split and had and example.split != had:
            reason = f"{example.key!r} is {had} in an earlier version; an example never changes side"
            return RowProblem(line, "split", reason)
        if example.split or self.as_given:
            return example.split
        return cast(Split, had) if had else None if self.share is None else side(example.key, self.share)
