"""The stress test after a rubric is submitted: it meets the responses its author wrote it without."""

from collections.abc import Mapping, Sequence
from typing import Any

from trainer.contracts import Rubric
from trainer.rewards.stress import Power, Stressed, stress_test
from webapp.annotation import shown
from webapp.annotation.kinds import Shown

TOLD: dict[Power, str] = {
    "discriminates": "tells the responses apart",
    "all_meet": "every response meets it: does not discriminate",
    "none_meets": "no response meets it: does not discriminate",
    "unknown": "",
}


def report(rubric: Rubric, responses: Sequence[Shown]) -> dict[str, Any]:
    """What a page shows and the API returns. Raises VerifierError for a verifier that cannot be run.

    `responses`: letter, text, score (None where an essential criterion has no verdict), clipped, missing, partial.
    `criteria`: id, text, points, verifier (its name), power, told, verdicts by letter: met (None: missing) and why.
    """
    return _written(stress_test(rubric, [response.text for response in responses]), responses)


def of_answer(answer: Mapping[str, Any], example: Mapping[str, Any]) -> dict[str, Any] | None:
    """For a submitted rubric and the example it was written for; None where that has no responses."""
    seen = shown.responses("rubric", {}, [], example, done=True)
    responses = [Shown.model_validate(response) for response in seen]
    return report(Rubric.model_validate(answer["rubric"]), responses) if responses else None


def _written(found: Stressed, responses: Sequence[Shown]) -> dict[str, Any]:
    letters = [response.letter for response in responses]
    told = [
        {
            "letter": response.letter,
            "text": response.text,
            "score": score.score,
            "clipped": score.clipped,
            "missing": score.missing,
            "partial": score.partial,
        }
        for response, score in zip(responses, found.scores_R, strict=True)
    ]
    criteria = [
        {
            "id": criterion.id,
            "text": criterion.text,
            "points": criterion.points,
            "verifier": criterion.verifier and criterion.verifier.name,
            "power": found.power_K[k],
            "told": TOLD[found.power_K[k]],
            "verdicts": {
                letter: {"met": row[k].met, "note": row[k].note}
                for letter, row in zip(letters, found.verdicts_RK, strict=True)
            },
        }
        for k, criterion in enumerate(found.criteria)
    ]
    return {"responses": told, "criteria": criteria, "unverified": sum(c.verifier is None for c in found.criteria)}
