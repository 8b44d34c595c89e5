"""Rubrics while they are written, over the API: structural hints, and a trial on given texts."""

from typing import Annotated, Any

from django.http import HttpRequest
from ninja import Router, Schema
from pydantic import Field

from trainer.contracts import Rubric, VerifierSpec
from trainer.rubrics.structure import Code, DraftCriterion
from webapp.accounts.access import require
from webapp.annotation.kinds import MAX_CRITERIA, MAX_RESPONSES, Shown
from webapp.annotation.work import rubric_trial
from webapp.core.problems import Invalid
from webapp.core.requests.limits import count_seconds
from webapp.core.requests.openapi import StrictIn

router = Router(tags=["annotation"])
MAX_READ = 10_000_000  # characters that verifiers read in one request
MAX_CHECKED = 200_000  # characters of the criteria that are checked in one request
Points = Annotated[float, Field(allow_inf_nan=False)]


class LineIn(StrictIn):
    """A criterion as it is being written."""

    text: str = Field("", max_length=20_000)
    points: Points | None = Field(1, description="None while nothing is chosen yet")
    verifier: VerifierSpec | None = None


class RubricCheckIn(StrictIn):
    criteria: list[LineIn] = Field(max_length=MAX_CRITERIA)


class HintOut(Schema):
    code: Code
    message: str
    criterion: int | None = Field(description="Position in the rubric, from 0; null: about the whole rubric")
    other: int | None = Field(description="The earlier criterion it is about, if there is one")


class RubricCheckOut(Schema):
    hints: list[HintOut]


class ResponseIn(Schema):
    letter: str = Field(min_length=1, max_length=64)
    text: str = Field(max_length=100_000)


class StressIn(StrictIn):
    rubric: Rubric
    responses: list[ResponseIn] = Field(min_length=1, max_length=MAX_RESPONSES)


@router.post("/rubrics/check", response=RubricCheckOut, summary="Structural hints about a rubric, finished or not")
def check(request: HttpRequest, payload: RubricCheckIn) -> dict[str, Any]:
    person = require(request).user_id
    if sum(len(criterion.text) for criterion in payload.criteria) > MAX_CHECKED:
        raise Invalid("The rubric is too long.", {"criteria": f"at most {MAX_CHECKED:,} characters together"})
    with count_seconds(person):
        return {
            "hints": rubric_trial.hints([DraftCriterion(c.text, c.points or 0.0, c.verifier) for c in payload.criteria])
        }


@router.post(
    "/rubrics/stress",
    response=dict[str, Any],
    summary="Try a rubric on responses: verifiers' verdicts, scores, and the criteria that separate the responses",
)
def try_on(request: HttpRequest, payload: StressIn) -> dict[str, Any]:
    person = require(request).user_id
    if len(payload.rubric.criteria) > MAX_CRITERIA:
        raise Invalid("The rubric is too long.", {"rubric.criteria": f"at most {MAX_CRITERIA} criteria"})
    reading = sum(criterion.verifier is not None for criterion in payload.rubric.criteria)
    if reading * sum(len(response.text) for response in payload.responses) > MAX_READ:
        raise Invalid("The texts are too long together.", {"responses": "send fewer or shorter texts"})
    letters = [response.letter for response in payload.responses]
    if len(set(letters)) != len(letters):
        raise Invalid("The responses cannot be told apart.", {"responses": "letters must be unique"})
    with count_seconds(person):
        return rubric_trial.report(payload.rubric, [Shown(letter=r.letter, text=r.text) for r in payload.responses])
