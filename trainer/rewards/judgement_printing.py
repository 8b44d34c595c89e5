"""Judgements by a rubric in the forms that `judgement_forms` reads, as demonstrations for a judge."""

import json
from dataclasses import dataclass

from trainer.judges.rubric_printing import Unwritable

from .judgement_forms import Choice, Form, read_judgement


@dataclass(frozen=True)
class Handled:
    """The judgement of one criterion: an explanation for each answer, and whether each answer meets it, or None if that is not known."""

    first: str
    second: str
    first_meets: bool | None = None
    second_meets: bool | None = None


@dataclass(frozen=True)
class Reasoned:
    """A whole judgement; `criteria` in the order of the rubric, answer A is the `first`."""

    criteria: tuple[Handled, ...]
    justification: str
    verdict: Choice


def write_judgement(said: Reasoned, form: Form) -> str:
    """The text in which `read_judgement` finds this verdict and no problem. Raises Unwritable if there is none."""
    text = _lines(said) if form == "rubric_arm" else _json(said)
    read = read_judgement(text, len(said.criteria), form)
    if read.problems or read.verdict != said.verdict:
        raise Unwritable(next(iter(read.problems), "its words hide the decision"))
    return text


def _lines(said: Reasoned) -> str:
    sides = {"A": [each.first for each in said.criteria], "B": [each.second for each in said.criteria]}
    lines = []
    for side, explanations in sides.items():
        lines.append(f"Response {side}")
        lines += [f"Criterion {number}: {_plain(text)}" for number, text in enumerate(explanations, 1)]
    end = ["Final Judgment", f"Justification: {_plain(said.justification)}", f"Winner: Response {said.verdict}"]
    return "\n".join([*lines, *end])


def _json(said: Reasoned) -> str:
    criteria = []
    for number, each in enumerate(said.criteria, 1):
        if each.first_meets is None or each.second_meets is None:
            raise Unwritable("it is not known which answer meets every criterion")
        explanation = each.first if each.first == each.second else f"A: {each.first} B: {each.second}"
        met = {"a_meets": each.first_meets, "b_meets": each.second_meets}
        criteria.append({"number": number, "explanation": _plain(explanation), **met})
    whole = {"criteria": criteria, "justification": _plain(said.justification), "verdict": said.verdict}
    return json.dumps(whole, ensure_ascii=False, indent=1)


def _plain(text: str) -> str:
    return " ".join(text.split())
