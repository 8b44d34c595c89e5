"""Formulas of judges and rubric writers in training. Parameters are the inputs by name."""

from dataclasses import asdict
from typing import Annotated, Any, Literal

from pydantic import BeforeValidator, Field

from trainer.config.rewards.tasks import JudgementForm
from trainer.contracts.rubric import RubricForm
from trainer.judges.answers import without_thinking
from trainer.judges.rubric_forms import read_rubric
from trainer.rewards import arm
from trainer.rewards.judgement_forms import Form, read_judgement
from trainer.rewards.pair_judgements import WORDS_OF, PairJudgement, read_pair_judgement

from .base import Flag, Partly, Share, Undefined, same_length, same_width

Verdict = Literal["A much better", "A", "A better", "tie", "B", "B better", "B much better"]
Vectors = list[list[float]]
_TIE = "the label is a tie, so no forced choice can be right"


def _how_many(value: Any) -> Any:
    return len(value) if isinstance(value, list) and all(isinstance(each, str) for each in value) else value


Criteria = Annotated[int, BeforeValidator(_how_many), Field(ge=1, le=100_000)]


def rubric_arm_judge(verdict: Verdict | None, label: Verdict, format_ok: Flag) -> float:
    """Reward of a judgement: 1 for the label's choice plus 1 for the format; a tie or no verdict is not right."""
    value = arm.judge_reward(verdict, label, format_ok)
    if value is None:
        raise Undefined(_TIE)
    return value


def rubric_arm_writer(verdict: Verdict | None, label: Verdict) -> float:
    """Reward of a rubric: 1 if the frozen judge that used it chose the label's answer, else 0."""
    value = arm.writer_reward(verdict, label)
    if value is None:
        raise Undefined("the judge gave no verdict, so the rubric is excluded" if verdict is None else _TIE)
    return value


def arm_variances(p: list[Share], u_r: Vectors, u_j: Vectors) -> Any:
    """Gradient variances of a judge step and a writer step, with noise, inconsistency and C1 (Rubric-ARM, 17 to 19)."""
    same_length(p=p, u_r=u_r, u_j=u_j)
    same_width("u_r", u_r)
    same_width("u_j", u_j)
    if not p:
        raise Undefined("there is no rubric")
    found = arm.arm_variances(p, u_r, u_j)
    if found.c1 is None:
        return Partly(asdict(found), "c1: every p(r) u_r is 0, so there is nothing to compare its variance with")
    return asdict(found)


def rubric_format(text: str, form: RubricForm) -> dict[str, Any]:
    """Whether a written rubric has its form, with the reasons if not."""
    found = read_rubric(text, form)
    return {"ok": found.ok, "reasons": found.problems, "notes": found.notes}


def judgement_format(
    text: str, criteria: Criteria | None = None, form: Form | JudgementForm | None = None
) -> dict[str, Any]:
    """Whether a judgement has its form: every criterion, a justification and one decision, or reasons and then a verdict.

    The second form, `json` or `lines`, is for a pair without a rubric.
    """
    if form is None and criteria is None:
        form = "json" if without_thinking(text).startswith("{") else "lines"
    if form == "json" or form == "lines":
        if criteria is not None:
            raise ValueError(f"criteria: leave this out: a judgement in the form {form!r} uses no rubric")
        return _of_a_pair(text, form)
    if criteria is None:
        raise ValueError("criteria: say how many the rubric has; only the forms 'json' and 'lines' use no rubric")
    found = read_judgement(text, criteria, form)
    return {"ok": found.ok, "reasons": found.problems, "verdict": found.verdict}


def _of_a_pair(text: str, form: JudgementForm) -> dict[str, Any]:
    found = read_pair_judgement(text, form)
    verdict = None if found.strength is None else WORDS_OF[found.strength]
    return {"ok": found.well_formed, "reasons": [why] if (why := _why_not(found, form)) else [], "verdict": verdict}


def _why_not(found: PairJudgement, form: JudgementForm) -> str:
    if found.problem or found.well_formed:
        return found.problem
    if not found.reasons:
        return "there is no reason"
    if form == "json":
        return "the text must be one JSON object with reasons, then verdict, and nothing else"
    return "the text must be the reasons, one on each line, then the verdict, and nothing else"
