"""The stress test after a rubric is submitted: it meets the responses its author wrote it without."""

import random
from collections.abc import Sequence
from string import ascii_uppercase
from typing import Any

from trainer.contracts import Rubric
from trainer.rewards.stress import Power, Stressed, stress_test
from webapp.annotation.kinds import MAX_RESPONSES, Shown
from webapp.annotation.models import Assignment

TOLD: dict[Power, str] = {
    "discriminates": "tells the responses apart",
    "all_meet": "every response meets it: does not discriminate",
    "none_meets": "no response meets it: does not discriminate",
    "unknown": "",
}


def report(rubric: Rubric, responses: Sequence[Shown]) -> dict[str, Any]:
    """What a page shows and the API returns. Raises VerifierError for a verifier that cannot be run.

    `responses`: letter, text, score (None where an essential criterion has no verdict), clipped, missing, partial.
    `criteria`: id, power, told, verdicts by letter: met (None: missing) and the note that says why.
    """
    return _written(stress_test(rubric, [shown.text for shown in responses]), responses)


def responses_shown(assignment: Assignment) -> list[Shown]:
    """The responses of the example under letters. Their order is drawn for this assignment, the same every time: the
    dataset's own order often tells which one is preferred."""
    texts = [str(response["text"]) for response in assignment.task.example.content.get("responses", [])]
    random.Random(assignment.pk).shuffle(texts)  # noqa: S311 - an arrangement, not a secret
    return [
        Shown(letter=letter, text=text) for letter, text in zip(ascii_uppercase, texts[:MAX_RESPONSES], strict=False)
    ]


def after_submit(assignment: Assignment, content: dict[str, Any]) -> dict[str, Any] | None:
    """For the answer just submitted: None where the project has no stress test or the example no responses."""
    project = assignment.project
    if project.kind != "rubric" or not project.settings.get("stress_test", True):
        return None
    responses = responses_shown(assignment)
    return report(Rubric.model_validate(content["rubric"]), responses) if responses else None


def _written(found: Stressed, responses: Sequence[Shown]) -> dict[str, Any]:
    letters = [shown.letter for shown in responses]
    told = [
        {
            "letter": shown.letter,
            "text": shown.text,
            "score": score.score,
            "clipped": score.clipped,
            "missing": score.missing,
            "partial": score.partial,
        }
        for shown, score in zip(responses, found.scores_R, strict=True)
    ]
    criteria = [
        {
            "id": criterion.id,
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
