"""Rubrics are rated and compared; `generator` writes them."""

from collections.abc import Iterator, Mapping
from typing import Any, Literal

from pydantic import Field

from ..answers import AnswerSchema, Reading
from ..base import ANSWER_NOTICE, DATA_NOTICE, Asked, BaseSpec, Kind, prompt_text, system_text
from ..inputs import InputProblem, JudgeInput
from ..templates import fence, numbered_list
from .generator import GENERATOR
from .shared import by_number, pick, prompt_of, texts


class RubricQualitySpec(BaseSpec):
    """Rates a rubric from 0 to 4 (the model's part of the reward of MaMs' generator)."""

    kind: Literal["rubric_quality"] = "rubric_quality"
    system: str = system_text(
        "You judge whether a rubric is fit to tell good responses to a conversation from bad ones. Look for what it demands "
        "that the person does not need, what it passes over, items that are vague, doubled, contradictory or check two "
        "things at once, and points that do not fit.\n"
        f"{DATA_NOTICE}\n"
        "Score: 0 useless, 1 mostly unfit, 2 usable with clear gaps, 3 good with small faults, 4 nothing to better.\n"
        f"{ANSWER_NOTICE}"
    )
    prompt: str = prompt_text("The conversation:\n{{conversation}}\n\nHow good is this rubric?\n{{criteria}}")


class RubricMatcherSpec(BaseSpec):
    """Finds the items of a generated rubric that say the same as reference items; many-to-many (RubricBench)."""

    kind: Literal["rubric_matcher"] = "rubric_matcher"
    system: str = system_text(
        "You compare two rubrics for the same conversation and list which items are the same check. Two items match when "
        "any response that meets one meets the other: same intent, not wider, not narrower, not vaguer. An item that covers "
        "only part of another does not match it, and several parts do not add up to a match. An item may match several.\n"
        f"{DATA_NOTICE}\nList matches only; an empty list is a fine answer.\n{ANSWER_NOTICE}"
    )
    prompt: str = prompt_text(
        "The conversation:\n{{conversation}}\n\nReference items:\n{{reference_items}}\n\n"
        "Which of these generated items match which reference items?\n{{generated_items}}"
    )


class NecessitySpec(BaseSpec):
    """Rates for each item of a rubric how necessary and how rigid it is, 1 to 5 (RubricBench)."""

    kind: Literal["necessity"] = "necessity"
    system: str = system_text(
        "You rate each item of a rubric twice, each item on its own.\n"
        "Necessity: 5 when a response cannot serve the person without it, 3 when it helps, 1 when nobody asked for it.\n"
        "Rigidity: 5 when it accepts a single wording, number or form, 3 when it leaves some freedom, 1 when it accepts "
        "every good way to do it.\n"
        f"{DATA_NOTICE}\nAnswer on every number once.\n{ANSWER_NOTICE}"
    )
    prompt: str = prompt_text("The conversation:\n{{conversation}}\n\nRate these items:\n{{criteria}}")


class QualityAnswer(AnswerSchema):
    problems: list[str]
    explanation: str
    score: float = Field(ge=0, le=4)


class Match(AnswerSchema):
    generated: int
    reference: int


class MatchesAnswer(AnswerSchema):
    matches: list[Match]


class NecessityItem(AnswerSchema):
    number: int
    explanation: str
    necessity: int = Field(ge=1, le=5)
    rigidity: int = Field(ge=1, le=5)


class NecessityAnswer(AnswerSchema):
    items: list[NecessityItem]


def _subject(given: JudgeInput, **more: Any) -> dict[str, Any]:
    return {**given.subject, "example": given.example, **more}


def _criteria_of(given: JudgeInput) -> str:
    if not given.criteria:
        raise InputProblem("the rubric has no criteria")
    return fence("rubric", numbered_list(f"({c.kind} rule, {c.points:+g} points) {c.text}" for c in given.criteria))


def _ask_rubric(spec: BaseSpec, given: JudgeInput) -> Iterator[Asked]:
    values = {"criteria": _criteria_of(given), "conversation": prompt_of(given)}
    yield Asked(values, _subject(given, criteria=[criterion.id for criterion in given.criteria]))


def _ask_matcher(spec: RubricMatcherSpec, given: JudgeInput) -> Iterator[Asked]:
    generated = texts(given.generated, "generated items")
    reference = texts(given.reference_items, "reference items")
    values = {
        "conversation": prompt_of(given),
        "reference_items": fence("reference", numbered_list(reference)),
        "generated_items": fence("generated", numbered_list(generated)),
    }
    yield Asked(values, _subject(given, generated=len(generated), reference=len(reference)))


def _read_matches(spec: RubricMatcherSpec, subject: Mapping[str, Any], answer: MatchesAnswer) -> Reading:
    """`matches`: [generated, reference] from 0, each once. A match with an item that does not exist makes the answer
    useless: nobody knows which item was meant."""
    pairs = sorted({(each.generated - 1, each.reference - 1) for each in answer.matches})
    for generated, reference in pairs:
        if not (0 <= generated < subject["generated"] and 0 <= reference < subject["reference"]):
            return Reading(None, f"it matches generated item {generated + 1} with reference item {reference + 1}")
    return Reading({"matches": [list(pair) for pair in pairs]})


def _read_necessity(spec: NecessitySpec, subject: Mapping[str, Any], answer: NecessityAnswer) -> Reading:
    return by_number([each.model_dump() for each in answer.items], subject["criteria"], "item")


KINDS = (
    GENERATOR,
    Kind(
        name="rubric_quality",
        title="Rubric quality",
        help="Rates a rubric itself from 0 to 4 and names its faults.",
        spec=RubricQualitySpec,
        variables=pick("conversation", "criteria"),
        required=("conversation", "criteria"),
        decides=("score",),
        answer=lambda spec: QualityAnswer,
        answer_format=lambda spec: '{"problems": ["a fault", ...], "explanation": "one sentence", "score": 0 to 4}',
        ask=_ask_rubric,
    ),
    Kind(
        name="rubric_matcher",
        title="Rubric matcher",
        help="Decides which generated rubric items say the same as which reference items.",
        spec=RubricMatcherSpec,
        variables={
            **pick("conversation"),
            "reference_items": "the items to be found again, numbered",
            "generated_items": "the items to be matched with them, numbered",
        },
        required=("reference_items", "generated_items"),
        decides=("matches",),
        answer=lambda spec: MatchesAnswer,
        answer_format=lambda spec: '{"matches": [{"generated": 1, "reference": 2}, ...]}',
        ask=_ask_matcher,
        read=_read_matches,
    ),
    Kind(
        name="necessity",
        title="Necessity and rigidity",
        help="Rates for each rubric item how necessary and how rigid it is.",
        spec=NecessitySpec,
        variables=pick("conversation", "criteria"),
        required=("conversation", "criteria"),
        decides=("items",),
        answer=lambda spec: NecessityAnswer,
        answer_format=lambda spec: (
            '{"items": [{"number": 1, "explanation": "one sentence", "necessity": 1 to 5, "rigidity": 1 to 5}, ...]}'
        ),
        ask=_ask_rubric,
        read=_read_necessity,
    ),
)
