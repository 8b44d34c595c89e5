"""From responses to rewards: verifiers, rubric scores and their composition. Torch-free."""

from .composition import Composed, Sample, compose, exclusions, guarded, overlong_penalty
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
    "ReportScore",
    "RubricScore",
    "Sample",
    "breakdown",
    "compose",
    "exclusions",
    "guarded",
    "likert_score",
    "overlong_penalty",
    "report_score",
    "score_rubric",
    "training_score",
    "verdicts",
]
