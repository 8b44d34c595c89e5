"""Each kind of part of a reward has its function here: one module for each family, and one plain registry.

To add one: its section in `trainer.config.rewards.parts`, a function in a module here, a line below, and a test.
"""

from collections.abc import Awaitable, Callable, Sequence

from ..parts import Item, Part, Services
from . import arm, custom, judgements, models, rubrics, texts, writing

Measure = Callable[..., Awaitable[list[Part]]]
"""A function that makes a `Part` for each item from (part, items, services), in order. If it raises, no item has this part."""

KINDS: dict[str, Measure] = {
    "verifier": rubrics.verifier,
    "rubric": rubrics.rubric,
    "judge": rubrics.judge,
    "format": texts.form,
    "overlong": texts.overlong,
    "reward_model": models.reward_model,
    "http": custom.http,
    "python": custom.python,
    "outcome": judgements.verdict,
    "rationale": judgements.rationale,
    "flaws": judgements.flaws,
    "well_formed": judgements.well_formed,
    "rubric_preference": writing.preference,
    "rubric_choice": writing.choice,
    "rubric_quality": writing.quality,
    "rubric_form": writing.form,
    "rubric_recall": writing.recall,
    "rubric_verdict": arm.verdict,
    "rubric_judgement_form": arm.form,
    "frozen_choice": arm.frozen_choice,
}

__all__ = ["KINDS", "Item", "Measure", "Part", "Sequence", "Services"]
