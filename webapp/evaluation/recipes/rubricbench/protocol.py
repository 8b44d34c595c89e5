"""RubricBench's rules for its judges: a forced choice, and three conditions that differ only in the rubric (RubricBench, 2026)."""

from collections.abc import Iterator, Mapping
from typing import Any

from trainer.config.errors import FieldProblem

from ..base import JudgeFacts

ALIKE = {
    "sampling.temperature": "temperature",
    "sampling.top_p": "top p",
    "sampling.max_tokens": "longest reply",
    "votes": "votes",
    "order": "order",
}
"""Settings of decoding that judges with and without a rubric share, and their names. A seed is left out, because it only repeats a draw."""


def problems(judges: Mapping[str, JudgeFacts]) -> Iterator[FieldProblem]:
    """Problems of `judges`, by their field: `judge`, `rubric_judge`, `generator`; an absent judge is not asked."""
    by_rubric = judges["rubric_judge"]
    for name in ("judge", "rubric_judge"):
        if name in judges and judges[name].spec.get("scale") != "forced":
            yield FieldProblem(
                name,
                f"{judges[name].key} may answer a tie, and RubricBench forces a choice; make its next version with the "
                "scale 'A or B', or switch strict off",
            )
    if plain := judges.get("judge"):
        differing = [words for path, words in ALIKE.items() if _at(plain, path) != _at(by_rubric, path)]
        if plain.asks != by_rubric.asks:
            yield FieldProblem("judge", f"{plain.key} asks another model than {by_rubric.key}; {_ALIKE}")
        if differing:
            yield FieldProblem("judge", f"{plain.key} differs from {by_rubric.key} in {', '.join(differing)}; {_ALIKE}")
    if (writer := judges.get("generator")) and writer.asks != by_rubric.asks:
        yield FieldProblem(
            "generator",
            f"{writer.key} asks another model than {by_rubric.key}, so its rubrics are not the judge's own; {_ALIKE}",
        )


_ALIKE = "the conditions must be alike but for the rubric, or switch strict off"


def _at(judge: JudgeFacts, path: str) -> Any:
    value: Any = judge.spec
    for name in path.split("."):
        value = (value or {}).get(name)
    return value
