"""From responses to rewards: verifiers, rubric scores and their composition. Torch-free."""

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
    "ReportScore",
    "RubricScore",
    "breakdown",
    "likert_score",
    "report_score",
    "score_rubric",
    "training_score",
    "verdicts",
]
