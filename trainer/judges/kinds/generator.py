"""Rubrics written before any response is seen, in the form of a program, of a paper or of a trained writer."""

import re
from collections.abc import Iterator, Mapping
from typing import Any, Literal

from trainer.config.errors import FieldProblem
from trainer.config.fields import knob
from trainer.contracts.plurals import with_noun
from trainer.contracts.rubric import RubricForm

from ..answers import AnswerSchema, Reading, without_thinking
from ..base import DATA_NOTICE, Asked, BaseSpec, Kind, prompt_text, system_text
from ..inputs import JudgeInput
from ..rubric_forms import RubricItem, WrittenRubric, read_rubric
from ..templates import fence, numbered_list
from .shared import pick, prompt_of

FORMS: Mapping[RubricForm, str] = {
    "touchstone": (
        '{"items": [{"text": "the statement", "kind": "hard" or "principle", "importance": "essential", "important", '
        '"optional" or "pitfall", "points": 1 to 10, below 0 for a pitfall}, ...]}'
    ),
    "mams": (
        "One JSON array of objects, each with exactly these three keys: "
        '[{"title": "a few words", "description": "Key: the statement", "weight": 5}, ...]\n'
        "Each description begins with the class of its item, and the class allows these weights. Key, 5: a response without "
        "it is worthless. Important, 3 or 4: a response is clearly worse without it. Optional, 1 or 2: a response is a "
        "little better with it. Error, -1 or -2: a fault, and the description says what the fault is."
    ),
    "rubric_arm": (
        "A numbered list with one item a line and no other line:\n"
        "1. The response ... [Hard Rule]\n2. The response ... [Principle]\n"
        "Hard rules come first: what the conversation demands outright, such as a number, a form or a name. Then the "
        "principles: what makes an answer to any conversation of this kind good, worded without the topic."
    ),
    "openrubrics": (
        "A checklist in Markdown under these four headings, in this order; leave out a heading that has no item:\n"
        "### Hard constraints\n- [ ] **a few words**: the statement\n"
        "### Core task\n- [ ] **a few words**: the statement\n"
        "### Optional\n- [ ] **a few words**: the statement\n"
        "### Pitfalls\n- [ ] **a few words**: the fault\n"
        "Hard constraints are what the conversation demands outright; the core task is what a good answer must achieve; "
        "optional items make it better; pitfalls are faults that answers are likely to have."
    ),
}
"""The text that asks for each form. The reader of the same name is in `trainer.judges.rubric_forms`.

Stored versions of judges show these texts word for word: another text would make a frozen version ask another question.
"""
ADVICE: Mapping[RubricForm, str] = {
    "touchstone": (
        'The answer is one JSON object. Items of kind "hard" come first: what the conversation demands outright. Then those '
        'of kind "principle": what an expert would look for. Points say how much an item matters; a fault that responses are '
        "likely to have is a pitfall."
    )
}
"""An explanation for each form whose text in `FORMS` shows only its shape. The other forms explain themselves."""
_FENCE = re.compile(r"```[a-z]*\n(.*)\n```", re.DOTALL)


class RubricGeneratorSpec(BaseSpec):
    """Writes a rubric from the conversation alone, or improves a draft of it."""

    kind: Literal["rubric_generator"] = "rubric_generator"
    form: RubricForm = knob(
        "touchstone",
        "How the rubric is written down: ours, MaMs' weighted items, Rubric-ARM's hard rules and principles, or OpenRubrics' "
        "checklist of four levels. A model that was trained to write rubrics needs the form of its training",
    )
    min_items: int = knob(2, "Fewest items that are asked for", unit="items", ge=1, le=50)
    max_items: int = knob(10, "Most items that are asked for", unit="items", ge=1, le=50)
    system: str = system_text(
        "You write the rubric by which responses to a conversation will be judged, before anybody has seen a response.\n"
        f"{DATA_NOTICE}\n"
        "Write between {{min_items}} and {{max_items}} items. Each item is one statement about a response that can be "
        "checked with yes or no, without opinion where that is possible, and says one thing only. Ask for nothing that the "
        "person does not need, and do not tie an item to one wording where several are as good. If a <reference> is shown, "
        "it is a good answer: take from it what must be right, not its wording. If a <draft> is shown, it is the rubric so "
        "far: drop what is vague, doubled or too strict, add what is missing, and give the whole rubric again.\n"
        "Answer in this form and with nothing else:\n{{answer_format}}\n{{advice}}"
    )
    prompt: str = prompt_text(
        "The conversation so far:\n{{conversation}}\n{{reference}}\n{{draft}}\nWrite the rubric for the next response."
    )

    def identity(self) -> dict[str, Any]:
        """The spec without `form` if it is the form of this program: versions from before there were other forms keep their digest."""
        whole = super().identity()
        return {name: value for name, value in whole.items() if (name, value) != ("form", "touchstone")}


class RubricAnswer(AnswerSchema):
    items: list[RubricItem]


def _ask(spec: RubricGeneratorSpec, given: JudgeInput) -> Iterator[Asked]:
    values = {
        "conversation": prompt_of(given),
        "reference": fence("reference", given.reference) if given.reference else "",
        "draft": fence("draft", numbered_list(given.generated)) if given.generated else "",
        "min_items": str(spec.min_items),
        "max_items": str(spec.max_items),
        "advice": ADVICE.get(spec.form, ""),
    }
    yield Asked(values, {**given.subject, "example": given.example})


def _read(spec: RubricGeneratorSpec, subject: Mapping[str, Any], answer: RubricAnswer) -> Reading:
    """Items with 0 points, or without words, decide nothing. They are left out, and the problem says so."""
    items = [each.model_dump() for each in answer.items if each.points and each.text.strip()]
    dropped = len(answer.items) - len(items)
    return _reading(spec, items, dropped, [f"{with_noun(dropped, 'items')} without points or words left out"])


def _read_text(spec: RubricGeneratorSpec, raw: str, complete: bool) -> Reading:
    """Reads the forms that are no JSON object. A rubric that was cut does not count: its last item may be incomplete."""
    if not complete:
        return Reading(None, "the answer was cut before its end")
    found = read_rubric(_unfenced(raw), spec.form)
    items = [criterion.model_dump(include=set(RubricItem.model_fields)) for criterion in found.criteria]
    if not items:
        return Reading(None, found.problems[0])
    return _reading(spec, items, _lost(found), list(found.problems))


def _reading(spec: RubricGeneratorSpec, items: list[dict[str, Any]], dropped: int, problems: list[str]) -> Reading:
    if not any(item["points"] > 0 for item in items):
        return Reading(None, "the rubric has no item with positive points")
    told = problems if dropped or spec.form != "touchstone" else []
    if not spec.min_items <= len(items) <= spec.max_items:
        told = [*told, f"{with_noun(len(items), 'items')}; asked for {spec.min_items} to {spec.max_items}"]
    return Reading({"items": items, "dropped": dropped}, "; ".join(told))


def _lost(found: WrittenRubric) -> int:
    """The items that were read and decide nothing."""
    return len(found.items) - len(found.criteria)


def _unfenced(raw: str) -> str:
    """The text without thinking aloud, and without the marks of a code block around it. A writer in training would be punished for such
    marks; a judge is not."""
    said = without_thinking(raw)
    block = _FENCE.fullmatch(said)
    return block[1] if block else said


def _problems(spec: RubricGeneratorSpec) -> Iterator[FieldProblem]:
    if spec.min_items > spec.max_items:
        yield FieldProblem("max_items", f"must not be below min_items, which is {spec.min_items}")


GENERATOR = Kind(
    name="rubric_generator",
    title="Rubric generator",
    help="Writes a rubric for a conversation before any response is seen.",
    spec=RubricGeneratorSpec,
    variables={
        **pick("conversation", "reference"),
        "draft": "the rubric so far, numbered, when it is to be improved; or empty",
        "min_items": "fewest items asked for",
        "max_items": "most items asked for",
        "advice": "what the form's kinds and points mean, where the form does not say so itself; or empty",
    },
    required=("conversation",),
    decides=("items",),
    answer=lambda spec: RubricAnswer if spec.form == "touchstone" else None,
    answer_format=lambda spec: FORMS[spec.form],
    ask=_ask,
    read=_read,
    read_text=_read_text,
    more_problems=_problems,
)
