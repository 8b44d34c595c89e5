"""Rubric scaffolds: part of the rubric in the rollout prompt (RuscaRL, Zhou et al., 2025).

The first responses of a group see much of the rubric and the last see none of it. Over the run all see less. The policy can
so learn to do without help what it found with help: by default, log-probabilities are those without the scaffold.
"""

import math
import random
from dataclasses import dataclass

from trainer.config.sections.scaffold import Scaffold
from trainer.contracts import Criterion, Rubric
from trainer.seeding import derive_seed

from .rounding import half_up


@dataclass(frozen=True)
class ScaffoldText:
    """The scaffold that one response is shown; `text` is empty if it is shown none."""

    text: str
    shown: int


def step_factor(config: Scaffold, step: int, total: int) -> float:
    """The share of the rubric at step 1..total, before the group factor; t = (step - 1) / (total - 1).

    `sigmoid` 1 / (1 + exp(alpha (t - t0))), `linear` 1 - t, `power` (1 - t)^n, `constant` 1.
    """
    t = (step - 1) / (total - 1) if total > 1 else 0.0
    match config.step:
        case "sigmoid":
            # exp overflows beyond 709; the share has been 0 long before.
            return 1.0 / (1.0 + math.exp(min(config.alpha * (t - config.t0), 700.0)))
        case "linear":
            return 1.0 - t
        case "power":
            return float((1.0 - t) ** config.power)
        case "constant":
            return 1.0


def group_factor(config: Scaffold, i: int, group_size: int) -> float:
    """The factor of the i-th response, i = 1..G: `linear` (G - i) / (G - 1), `binary` 1 for the first n, `none` 1."""
    if config.group == "binary":
        return 1.0 if i <= config.binary_n else 0.0
    if config.group == "linear" and group_size > 1:
        return (group_size - i) / (group_size - 1)
    return 1.0


def shown_count(share: float, criteria: int) -> int:
    """round(share * |R|), halves away from zero (Python's `round` would take them to the even neighbour)."""
    return half_up(share * criteria)


def scaffold_for(rubric: Rubric, share: float, seed: int, *purpose: str | int) -> ScaffoldText:
    """A random choice of `shown_count` criteria, in the rubric's order, as text."""
    count = shown_count(share, len(rubric.criteria))
    chooser = random.Random(derive_seed(seed, "scaffold", *purpose))  # noqa: S311 - a choice, not secrecy
    chosen = sorted(chooser.sample(range(len(rubric.criteria)), count))
    return ScaffoldText(scaffold_text([rubric.criteria[k] for k in chosen]), count)


def scaffold_text(criteria: list[Criterion]) -> str:
    """Points to include and points to avoid; a list without entries has no heading. Empty if there are no criteria."""
    if not criteria:
        return ""
    include = [criterion.text for criterion in criteria if criterion.points > 0]
    avoid = [criterion.text for criterion in criteria if criterion.points < 0]
    parts = [
        *_section("A good answer does this:", include),
        *_section("A good answer does none of this:", avoid),
        "Answer naturally, and do not mention these points.",
    ]
    return "\n".join(parts)


def _section(heading: str, texts: list[str]) -> list[str]:
    return [heading, *(f"- {text}" for text in texts)] if texts else []
