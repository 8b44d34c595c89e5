"""One response is judged by criteria: one call per criterion, all criteria in one call, or ratings."""

from collections.abc import Iterator, Mapping
from typing import Any, Literal

from pydantic import Field

from ..answers import AnswerSchema, Reading
from ..base import ANSWER_NOTICE, DATA_NOTICE, Asked, BaseSpec, Kind, prompt_text, system_text
from ..inputs import JudgeInput
from ..templates import fence, numbered_list
from .shared import by_number, judged_criteria, pick, prompt_of, responses_of

_MET = """Look for evidence in the response before you decide. A statement about a fault is met when the response has that fault. A statement that holds only in part is not met. Length, tone and confidence count only where the statement is about them."""

_SHOWN = """The conversation so far:
{{conversation}}

The response to judge:
{{response}}

"""


class CriterionSpec(BaseSpec):
    """Is this criterion met? One call per response and criterion; the calls of a response share their prefix."""

    kind: Literal["criterion"] = "criterion"
    system: str = system_text(
        f"You decide whether a statement is true of a response that was given in a conversation.\n{DATA_NOTICE}\n{_MET}\n"
        f"{ANSWER_NOTICE}"
    )
    prompt: str = prompt_text(_SHOWN + "Is this statement true of the response?\n{{criterion}}")


class ChecklistSpec(BaseSpec):
    """All criteria of a rubric in one call: fewer calls, but the verdicts are not independent of each other."""

    kind: Literal["checklist"] = "checklist"
    system: str = system_text(
        f"You go through a list of statements and decide for each on its own whether it is true of a response that was "
        f"given in a conversation.\n{DATA_NOTICE}\n{_MET}\nAnswer on every number once.\n{ANSWER_NOTICE}"
    )
    prompt: str = prompt_text(_SHOWN + "Which of these statements are true of the response?\n{{criteria}}")


class LikertSpec(BaseSpec):
    """Every criterion rated from 1 to 10 in one call (MaMs)."""

    kind: Literal["likert"] = "likert"
    system: str = system_text(
        f"You rate how far a response that was given in a conversation fulfils each item of a list, each on its own: 1 is "
        f"not at all, 10 is fully. An item about a fault is rated by how much of the fault there is.\n{DATA_NOTICE}\n"
        f"Use the whole scale, and answer on every number once.\n{ANSWER_NOTICE}"
    )
    prompt: str = prompt_text(_SHOWN + "Rate the response on each of these items:\n{{criteria}}")


class PointwiseSpec(BaseSpec):
    """One rating from 1 to 10 for the whole response, without a rubric: the baseline."""

    kind: Literal["pointwise"] = "pointwise"
    system: str = system_text(
        f"You rate how well a response serves the person it was written for: 1 is useless or harmful, 10 could not be "
        f"better. Correctness and doing what was asked weigh most; length and polish alone earn nothing.\n{DATA_NOTICE}\n"
        f"{ANSWER_NOTICE}"
    )
    prompt: str = prompt_text(_SHOWN + "How good is the response?")


class MetAnswer(AnswerSchema):
    explanation: str = Field(description="The evidence, in one or two sentences")
    met: bool


class Numbered(AnswerSchema):
    number: int


class NumberedMet(MetAnswer, Numbered):
    pass


class ChecklistAnswer(AnswerSchema):
    verdicts: list[NumberedMet]


class RatingAnswer(AnswerSchema):
    explanation: str
    rating: int = Field(ge=1, le=10)


class NumberedRating(RatingAnswer, Numbered):
    pass


class LikertAnswer(AnswerSchema):
    ratings: list[NumberedRating]


def _about(given: JudgeInput, response: str, text: str) -> tuple[dict[str, str], dict[str, Any]]:
    values = {"conversation": prompt_of(given), "response": fence("response", text)}
    values["reference"] = fence("reference", given.reference) if given.reference else ""
    return values, {**given.subject, "example": given.example, "response": response}


def _each_criterion(spec: BaseSpec, given: JudgeInput) -> Iterator[Asked]:
    criteria = judged_criteria(given)
    for response, text in responses_of(given):
        values, subject = _about(given, response, text)
        for criterion in criteria:
            shown = {**values, "criterion": fence("criterion", criterion.text)}
            yield Asked(shown, {**subject, "criterion": criterion.id})


def _all_criteria(spec: BaseSpec, given: JudgeInput) -> Iterator[Asked]:
    criteria = judged_criteria(given)
    if not criteria:
        return
    listed = fence("criteria", numbered_list(criterion.text for criterion in criteria))
    for response, text in responses_of(given):
        values, subject = _about(given, response, text)
        yield Asked({**values, "criteria": listed}, {**subject, "criteria": [each.id for each in criteria]})


def _whole(spec: BaseSpec, given: JudgeInput) -> Iterator[Asked]:
    for response, text in responses_of(given):
        yield Asked(*_about(given, response, text))


def _read_checklist(spec: BaseSpec, subject: Mapping[str, Any], answer: ChecklistAnswer) -> Reading:
    return by_number([each.model_dump() for each in answer.verdicts], subject["criteria"], "statement")


def _read_ratings(spec: BaseSpec, subject: Mapping[str, Any], answer: LikertAnswer) -> Reading:
    return by_number([each.model_dump() for each in answer.ratings], subject["criteria"], "item")


KINDS = (
    Kind(
        name="criterion",
        title="Criterion",
        help="Decides one criterion of a rubric per call.",
        spec=CriterionSpec,
        variables=pick("conversation", "response", "reference", "criterion"),
        required=("response", "criterion"),
        decides=("met",),
        answer=lambda spec: MetAnswer,
        answer_format=lambda spec: '{"explanation": "one or two sentences of evidence", "met": true or false}',
        ask=_each_criterion,
    ),
    Kind(
        name="checklist",
        title="Checklist",
        help="Decides all criteria of a rubric in one call.",
        spec=ChecklistSpec,
        variables=pick("conversation", "response", "reference", "criteria"),
        required=("response", "criteria"),
        decides=("items",),
        answer=lambda spec: ChecklistAnswer,
        answer_format=lambda spec: (
            '{"verdicts": [{"number": 1, "explanation": "one sentence of evidence", "met": true or false}, ...]}'
        ),
        ask=_all_criteria,
        read=_read_checklist,
    ),
    Kind(
        name="likert",
        title="Likert",
        help="Rates every criterion of a rubric from 1 to 10 in one call.",
        spec=LikertSpec,
        variables=pick("conversation", "response", "reference", "criteria"),
        required=("response", "criteria"),
        decides=("items",),
        answer=lambda spec: LikertAnswer,
        answer_format=lambda spec: (
            '{"ratings": [{"number": 1, "explanation": "one sentence", "rating": 1 to 10}, ...]}'
        ),
        ask=_all_criteria,
        read=_read_ratings,
    ),
    Kind(
        name="pointwise",
        title="Pointwise",
        help="Rates a whole response from 1 to 10, without a rubric.",
        spec=PointwiseSpec,
        variables=pick("conversation", "response", "reference"),
        required=("response",),
        decides=("rating",),
        answer=lambda spec: RatingAnswer,
        answer_format=lambda spec: '{"explanation": "one or two sentences", "rating": 1 to 10}',
        ask=_whole,
    ),
)
