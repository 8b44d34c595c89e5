"""What the rubric of an example says of a text: at once, by its verifiers. Criteria that need a judge stay open."""

from typing import Any

from trainer.rewards import breakdown, report_score, verdicts
from webapp.core.problems import Invalid
from webapp.datasets.models import Example


def by_rubric(row: Example, text: str) -> dict[str, Any]:
    """`score` (None where it cannot be said), how many criteria are `missing`, and each with its verdict.

    Raises Invalid at `example` where it has no rubric.
    """
    rubric = row.record.rubric
    if rubric is None:
        raise Invalid("There is nothing to score by.", {"example": "has no rubric"})
    given = verdicts(rubric, text)
    found = report_score(rubric, given)
    listed = [
        {"text": each.text, "points": each.points, "met": each.verdict.met, "note": each.verdict.note}
        for each in breakdown(rubric, given)
    ]
    return {"score": found.score, "missing": found.missing, "partial": found.partial, "criteria": listed}
