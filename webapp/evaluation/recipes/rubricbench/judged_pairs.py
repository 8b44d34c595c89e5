"""The pairs of a RubricBench evaluation with all results about them."""

from collections.abc import Iterable
from dataclasses import dataclass, field, replace
from typing import Any

from trainer.contracts import Criterion
from trainer.judges.inputs import JudgeInput, of_example
from trainer.metrics import rubricbench as bench

from ..base import JudgedQuestion
from ..pairs import FirstComparison

VANILLA, SELF, HUMAN = "vanilla", "self", "human"
"""The three conditions."""


@dataclass
class SeenPair:
    """One pair with all results about it. `own`: the generated rubric, None if there is none."""

    pair: FirstComparison
    human: tuple[Criterion, ...]
    own: tuple[Criterion, ...] | None = None
    verdicts: dict[str, int | None] = field(default_factory=dict)
    ids: list[int] = field(default_factory=list)
    matches: list[list[int]] | None = None
    aligned: bench.Alignment | None = None
    rated: list[dict[str, Any]] = field(default_factory=list)  # {"whose", "text", "necessity", "rigidity"} by item
    leaning: int | None = None  # which response the judge's checks of the human items favour; None: not known
    sized: dict[str, int | None] = field(default_factory=dict)  # verdicts of the curves, by the name of their point

    @property
    def label(self) -> int:
        return self.pair.label or 0


def inputs_of(seen: Iterable[SeenPair], criteria: Any) -> list[JudgeInput]:
    """The inputs of this condition. Pairs without its rubric are not asked about; they count as invalid there."""
    listed = []
    for each in seen:
        chosen = criteria(each)
        if chosen is not None:
            listed.append(replace(of_example(each.pair.example, pair=True), criteria=chosen))
    return listed


def criteria_of(answer: JudgedQuestion | None) -> tuple[Criterion, ...] | None:
    if answer is None or answer.parsed is None:
        return None
    items = answer.parsed["items"]
    return tuple(
        Criterion(id=f"g{i}", text=e["text"], points=e["points"], kind=e["kind"], importance=e["importance"])
        for i, e in enumerate(items, 1)
    )


def ids_by_example(answers: Iterable[JudgedQuestion]) -> dict[str, list[int]]:
    """The stored verdicts on each pair."""
    found: dict[str, list[int]] = {}
    for answer in answers:
        if answer.id:
            found.setdefault(answer.subject["example"], []).append(answer.id)
    return found


def judged(seen: Iterable[SeenPair], name: str) -> list[bench.JudgedPair]:
    return [bench.JudgedPair(e.pair.key, e.pair.example.domain or "no domain", e.label, e.verdicts[name]) for e in seen]
