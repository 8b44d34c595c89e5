"""Metrics of the judgements and the rubrics of recipe `alternating`, from what their parts have kept to show.

Torch-free. An estimate over held-out pairs counts each pair once, with the mean of its two orders;
pairs of one example are resampled together.
"""

import statistics
from collections.abc import Mapping, Sequence
from typing import Any

from trainer.metrics.estimate import bootstrap_ratio
from trainer.rewards.written_rubrics import FACTS

from . import writing_metrics
from .base import AnsweredQuestion
from .estimates import estimate_metrics, mean

_OF_RUBRICS = ("eval/rubric_", "eval/human_rubrics", "eval/format_rate", "eval/unreadable", "eval/criteria")
_STEP = ("writing/format_rate", "writing/unreadable", "writing/criteria")


def of_judgements(answers: Sequence[AnsweredQuestion]) -> dict[str, float]:
    """Means over the step's judgements; undefined values are left out."""
    verdicts = [each.shown("outcome").get("verdict") for each in answers]
    decided = [verdict for verdict in verdicts if verdict is not None]
    found = {
        "judging/accuracy": mean(each.parts["outcome"].value for each in answers),
        "judging/format_rate": mean(each.parts["form"].value for each in answers),
        "judging/undecided": mean(verdict is None for verdict in verdicts),
        "judging/first": mean(verdict < 0 for verdict in decided),
    }
    return {key: value for key, value in found.items() if value is not None}


def of_rubrics(answers: Sequence[AnsweredQuestion]) -> dict[str, float]:
    """Measures of how the step's rubrics are written."""
    return {key: value for key, value in writing_metrics.of_step(answers).items() if key in _STEP}


def of_evaluation(answers: Sequence[AnsweredQuestion]) -> dict[str, float]:
    """Measures of one rubric for each held-out pair, by which the judge has judged both orders."""
    said = [_judged(each) for each in answers]
    examples = [str(each.facts[FACTS]["example"]) for each in answers]
    right = [_right(judged) for judged in said]
    accuracy = bootstrap_ratio(right, [1.0] * len(right), clusters=examples, share=True)
    found = estimate_metrics("accuracy", "pairs", accuracy)
    both = [judged for judged in said if judged and all("verdict" in each for each in judged)]
    found["eval/ordered_pairs"] = float(len(both))
    agree = mean(len({each["verdict"] == each["people"] for each in judged}) == 1 for judged in both)
    undecided = mean("verdict" not in each for judged in said for each in judged)
    found |= {"eval/consistent": agree} if agree is not None else {}
    found |= {"eval/undecided": undecided} if undecided is not None else {}
    rubrics = writing_metrics.of_evaluation(answers)
    return found | {key: value for key, value in rubrics.items() if key.startswith(_OF_RUBRICS)}


def _judged(answer: AnsweredQuestion) -> Sequence[Mapping[str, Any]]:
    """The judge's answers by the rubric in each order; empty if the rubric cannot be read."""
    return [each["parsed"] for each in answer.shown("choice").get("answers", ())]


def _right(judged: Sequence[Mapping[str, Any]]) -> float:
    """The share of orders in which the judge chose the preferred answer; 0 for a rubric that cannot be read."""
    return statistics.fmean(each.get("verdict") == each["people"] for each in judged) if judged else 0.0
