"""Computes hints and verifiers' verdicts for a rubric that somebody writes, in a child process with a time limit.

A person's pattern can make a search as slow as they like, and one request could ask for thousands of searches. The functions with a leading
underscore run in the child process, without Django.
"""

from collections.abc import Mapping, Sequence
from dataclasses import asdict
from time import monotonic
from typing import Any

from trainer.contracts import Rubric, Verdict, VerifierSpec
from trainer.rubrics.stress import Power, Stressed, stress_test
from trainer.rubrics.structure import DraftCriterion, structural_hints
from trainer.verifiers import VerifierError
from webapp.core.background import sandbox
from webapp.core.problems import Invalid

from ..kinds import Shown

TOLD: dict[Power, str] = {
    "discriminates": "tells the responses apart",
    "all_meet": "every response meets it, so it does not discriminate",
    "none_meets": "no response meets it, so it does not discriminate",
    "unknown": "",
}
SECONDS = 1.0  # for the verifiers of one request; a verdict that is late is missing
LIMITS = sandbox.ProcessLimits(memory=300_000_000, seconds=SECONDS + 2)


Judged = Mapping[str, Mapping[str, Verdict]]


def report(rubric: Rubric, responses: Sequence[Shown], judged: Judged | None = None) -> dict[str, Any]:
    """The trial that a page shows and the API returns. Raises Invalid at a verifier that cannot run, or for too much to compute.

    `responses`: letter, text, score (None if an essential criterion has no verdict), clipped, missing, partial. `criteria`: id, text,
    points, verifier (its name), power, told, verdicts by letter: met (None: missing) and why. `judged`: by letter and criterion, a judge's
    verdicts on criteria without a verifier. `unverified` counts the criteria without one that lack a verdict.
    """
    given = {
        "rubric": rubric.model_dump(mode="json"),
        "responses": [each.model_dump(mode="json") for each in responses],
        "judged": [
            {name: verdict.model_dump(mode="json") for name, verdict in (judged or {}).get(each.letter, {}).items()}
            for each in responses
        ],
    }
    found: dict[str, Any] = _within("_report", "responses", **given)
    return found


def hints(criteria: Sequence[DraftCriterion]) -> list[dict[str, Any]]:
    """The structural hints about these lines. Raises Invalid at `criteria` for too much to compute."""
    lines = [(line.text, line.points, line.verifier and line.verifier.model_dump(mode="json")) for line in criteria]
    found: list[dict[str, Any]] = _within("_hints", "criteria", lines=lines)
    return found


def _within(function: str, field: str, **given: Any) -> Any:
    try:
        return sandbox.call(f"{__name__}:{function}", LIMITS, **given)
    except sandbox.Exceeded as error:
        raise Invalid(
            "The trial computes too much at once.", {field: f"{error}; send less, or simpler patterns"}
        ) from error


def _report(
    rubric: dict[str, Any], responses: list[dict[str, Any]], judged: list[dict[str, dict[str, Any]]]
) -> dict[str, Any]:
    shown = [Shown.model_validate(response) for response in responses]
    said = [{name: Verdict.model_validate(each) for name, each in row.items()} for row in judged]
    try:
        found = stress_test(Rubric.model_validate(rubric), [each.text for each in shown], monotonic() + SECONDS, said)
    except VerifierError as error:
        raise Invalid("A verifier cannot run.", {error.field: error.message}) from error
    return _written(found, shown)


def _hints(lines: list[list[Any]]) -> list[dict[str, Any]]:
    read = [DraftCriterion(text, points, spec and VerifierSpec.model_validate(spec)) for text, points, spec in lines]
    return [asdict(hint) for hint in structural_hints(read)]


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
    lacking = [any(row[k].met is None for row in found.verdicts_RK) for k in range(len(found.criteria))]
    unverified = sum(c.verifier is None and lacks for c, lacks in zip(found.criteria, lacking, strict=True))
    return {"responses": told, "criteria": criteria, "unverified": unverified}
