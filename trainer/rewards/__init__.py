"""From responses to rewards: verifiers, judges, models and services, and their composition. Torch-free."""

from .composition import Composed, compose, exclusions
from .kinds.texts import overlong_penalty
from .parts import Item, Part, Services, Unscored
from .rubric import (
    ReportScore,
    RubricScore,
    breakdown,
    likert_score,
    report_score,
    score_rubric,
    training_score,
    verdicts,
)

__all__ = [
    "Composed",
    "Item",
    "Part",
    "ReportScore",
    "RubricScore",
    "Services",
    "Unscored",
    "breakdown",
    "compose",
    "exclusions",
    "likert_score",
    "overlong_penalty",
    "report_score",
    "score_rubric",
    "training_score",
    "verdicts",
]
