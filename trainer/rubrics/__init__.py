"""What is about the text of a rubric: its score from verdicts, its structure and wording, its stress test. Torch-free."""

from .score import (
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
