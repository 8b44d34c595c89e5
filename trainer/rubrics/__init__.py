"""Work on rubrics: their scores from verdicts, their structure and wording, their stress test. It needs no torch."""

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
