"""Rubrics written, rated and compared (METHODS 3 and 5)."""

from collections.abc import Iterator, Mapping
from typing import Any, Literal

from pydantic import Field

from trainer.config.errors import FieldProblem
from trainer.config.fields import knob
from trainer.contracts.counted import counted

from ..answers import Answer, Reading
from ..base import ANSWER_NOTICE, DATA_NOTICE, Asked, BaseSpec, Kind, prompt_text, system_text
from ..inputs import InputProblem, JudgeInput
from ..templates import fenced, numbered
from .shared import by_number, pick, prompt_of, texts


class RubricGeneratorSpec(BaseSpec):
    """Writes a rubric from the conversation alone, or improves a draft of it."""

    kind: Literal["rubric_generator"] = "rubric_generator"
    min_items: int = knob(2, "Fewest items that are asked for", unit="items", ge=1, le=50)
    max_items: int = knob(10, "Most items that are asked for", unit="items", ge=1, le=50)
    system: str = system_text(
        "You write the rubric by which responses to a conversation will be judged, before anybody has seen a response.\n"
        f"{DATA_NOTICE}\n"
        "Write between {{min_items}} and {{max_items}} items. Each item is one statement about a response that can be "
        "checked with yes or no, without opinion where that is possible, and says one thing only. Begin with what the "
        "conversation demands outright (kind hard); then what an expert would look for (kind principle). Ask for nothing "
        "that the person does not need, and do not tie a point to one wording where several are as good. Points from 1 to "
        "10 say how much an item matters; a fault that responses are likely to have is a pitfall with negative points. "
        "If a <reference> is shown, it is a good answer: take from it what must be right, not its wording. If a <draft> "
        "is shown, it is the rubric so far: drop what is vague, doubled or too strict, add what is missing, and give the "
        f"whole rubric again.\n{ANSWER_NOTICE}"
    )
    prompt: str = prompt_text(
        "The conversation so far:\n{{conversation}}\n{{reference}}\n{{draft}}\nWrite the rubric for the next response."
    )


class RubricQualitySpec(BaseSpec):
    """Rates a rubric itself from 0 to 4 (the model's part of the MaMs generator reward)."""

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
    """Which items of a generated rubric say the same as which reference items; many-to-many (RubricBench)."""

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


class RubricItem(Answer):
    text: str = Field(min_length=1)
    kind: Literal["hard", "principle"]
    importance: Literal["essential", "important", "optional", "pitfall"]
    points: float = Field(ge=-10, le=10)


class RubricAnswer(Answer):
    items: list[RubricItem]


class QualityAnswer(Answer):
    problems: list[str]
    explanation: str
    score: float = Field(ge=0, le=4)


class Match(Answer):
    generated: int
    reference: int


class MatchesAnswer(Answer):
    matches: list[Match]


class NecessityItem(Answer):
    number: int
    explanation: str
    necessity: int = Field(ge=1, le=5)
    rigidity: int = Field(ge=1, le=5)


class NecessityAnswer(Answer):
    items: list[NecessityItem]


def _subject(given: JudgeInput, **more: Any) -> dict[str, Any]:
    return {**given.subject, "example": given.example, **more}


def _ask_generator(spec: RubricGeneratorSpec, given: JudgeInput) -> Iterator[Asked]:
    values = {
        "conversation": prompt_of(given),
        "reference": fenced("reference", given.reference) if given.reference else "",
        "draft": fenced("draft", numbered(given.generated)) if given.generated else "",
        "min_items": str(spec.min_items),
        "max_items": str(spec.max_items),
    }
    yield Asked(values, _subject(given))


def _criteria_of(given: JudgeInput) -> str:
    if not given.criteria:
        raise InputProblem("the rubric has no criteria")
    return fenced("rubric", numbered(f"({c.kind} rule, {c.points:+g} points) {c.text}" for c in given.criteria))


def _ask_rubric(spec: BaseSpec, given: JudgeInput) -> Iterator[Asked]:
    values = {"criteria": _criteria_of(given), "conversation": prompt_of(given)}
    yield Asked(values, _subject(given, criteria=[criterion.id for criterion in given.criteria]))


def _ask_matcher(spec: RubricMatcherSpec, given: JudgeInput) -> Iterator[Asked]:
    generated = texts(given.generated, "generated items")
    reference = texts(given.reference_items, "reference items")
    values = {
        "conversation": prompt_of(given),
        "reference_items": fenced("reference", numbered(reference)),
        "generated_items": fenced("generated", numbered(generated)),
    }
    yield Asked(values, _subject(given, generated=len(generated), reference=len(reference)))


def _read_generator(spec: RubricGeneratorSpec, subject: Mapping[str, Any], answer: RubricAnswer) -> Reading:
    """Items of 0 points decide nothing and are left out, which the problem says; so are items without words."""
    items = [each.model_dump() for each in answer.items if each.points and each.text.strip()]
    dropped = len(answer.items) - len(items)
    if not any(item["points"] > 0 for item in items):
        return Reading(None, "the rubric has no item with positive points")
    problems = [f"{counted(dropped, 'items')} without points or words left out"] if dropped else []
    if not spec.min_items <= len(items) <= spec.max_items:
        problems.append(f"{counted(len(items), 'items')}; asked for {spec.min_items} to {spec.max_items}")
    return Reading({"items": items, "dropped": dropped}, "; ".join(problems))


def _read_matches(spec: RubricMatcherSpec, subject: Mapping[str, Any], answer: MatchesAnswer) -> Reading:
    """`matches`: [generated, reference] from 0, each once. A match with an item that does not exist spoils the answer:
    which item was meant cannot be known."""
    pairs = sorted({(each.generated - 1, each.reference - 1) for each in answer.matches})
    for generated, reference in pairs:
        if not (0 <= generated < subject["generated"] and 0 <= reference < subject["reference"]):
            return Reading(None, f"it matches generated item {generated + 1} with reference item {reference + 1}")
    return Reading({"matches": [list(pair) for pair in pairs]})


def _read_necessity(spec: NecessitySpec, subject: Mapping[str, Any], answer: NecessityAnswer) -> Reading:
    return by_number([each.model_dump() for each in answer.items], subject["criteria"], "item")


def _generator_problems(spec: RubricGeneratorSpec) -> Iterator[FieldProblem]:
    if spec.min_items > spec.max_items:
        yield FieldProblem("max_items", f"below min_items, which is {spec.min_items}")


_ITEM = (
    '{"text": "the statement", "kind": "hard" or "principle", "importance": "essential", "important", "optional" or '
    '"pitfall", "points": 1 to 10, below 0 for a pitfall}'
)
KINDS = (
    Kind(
        name="rubric_generator",
        title="Rubric generator",
        help="Writes a rubric for a conversation before any response is seen.",
        spec=RubricGeneratorSpec,
        variables={
            **pick("conversation", "reference"),
            "draft": "the rubric so far, numbered, when it is to be improved; or empty",
            "min_items": "fewest items asked for",
            "max_items": "most items asked for",
        },
        required=("conversation",),
        decides=("items",),
        answer=lambda spec: RubricAnswer,
        answer_format=lambda spec: f'{{"items": [{_ITEM}, ...]}}',
        ask=_ask_generator,
        read=_read_generator,
        more_problems=_generator_problems,
    ),
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
