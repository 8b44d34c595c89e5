"""The judges of a run as JSON."""

from typing import Any

from webapp.evaluation.licences import licence
from webapp.evaluation.licences.licence import Licence

from ..models import RunJudge


def run_judge(row: RunJudge, known: Licence) -> dict[str, Any]:
    names = ("id", "calls", "failed", "tokens", "money", "budget_tokens", "budget_money", "problem")
    version = row.version
    return {name: getattr(row, name) for name in names} | {
        "judge": str(version),
        "licence": licence.as_json(known),
        "judge_id": version.judge_id,
        "version": version.number,
    }
