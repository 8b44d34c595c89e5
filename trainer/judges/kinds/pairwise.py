"""Two responses compared, with or without a rubric, in either order.

Parsed answers stay as the judge gave them: "A" is the response that was shown first. `trainer.judges.combine` un-swaps them.
"""

from collections.abc import Iterator, Mapping
from typing import Any, Literal

from pydantic import Field, model_validator

from trainer.config.errors import FieldProblem
from trainer.config.fields import knob
from trainer.config.rewards.tasks import JudgementForm

from ..answers import AnswerSchema, Reading
from ..base import ANSWER_NOTICE, DATA_NOTICE, Asked, Kind, OrderedSpec, prompt_text, system_text
from ..inputs import InputProblem, JudgeInput
from ..reason_lines import FORM, read_lines
from ..templates import fence, numbered_list
from .shared import by_number, pick, prompt_of

Scale = Literal["forced", "tie", "five"]
STRENGTHS = {"A much better": -2, "A": -1, "A better": -1, "tie": 0, "B": 1, "B better": 1, "B much better": 2}
_SCALE_HELP = "Verdicts the judge may give: A or B; A, B or a tie; or five steps from A much better to B much better"

_SHOWN = """The conversation so far:
{{conversation}}

Response A:
{{response_a}}

Response B:
{{response_b}}

"""
_FAIR = (
    "The order of the two is accidental, and who wrote them is not known. Being longer, better formatted or more "
    "confident is no merit by itself."
)

_IN_LINES = {
    "scale": "five",
    "system": "",
    "prompt": "{{conversation}}\n{{response_a}}\n{{response_b}}\nWhich is better?\n{{answer_format}}",
}


class PairwiseSpec(OrderedSpec):
    """Decides which of two responses is better, with reasons ordered by importance; no rubric is shown."""

    kind: Literal["pairwise"] = "pairwise"
    scale: Scale = knob("tie", _SCALE_HELP)
    form: JudgementForm = knob(
        "json",
        "How the judge answers: one JSON object, or lines, for small models that were trained to judge in lines. With lines, "
        "there are five verdicts. *Use as a judge* on the page of such a model fills in the templates of its training",
    )
    system: str = system_text(
        f"You compare two responses to the same conversation and say which serves the person better.\n{DATA_NOTICE}\n"
        f"{_FAIR}\nFirst collect your reasons, the weightiest first; each names one concrete thing that one response does "
        f"and what it is worth. Then give the verdict that follows from them.\n{ANSWER_NOTICE}"
    )
    prompt: str = prompt_text(_SHOWN + "Which response is better?")

    @model_validator(mode="before")
    @classmethod
    def _of_form(cls, raw: Any) -> Any:
        """The settings that are not given for a judge that answers in lines are those with which such judges are trained."""
        return {**_IN_LINES, **raw} if isinstance(raw, dict) and raw.get("form") == "lines" else raw

    def identity(self) -> dict[str, Any]:
        """The spec without `form` if it is JSON: versions from before there were lines keep their digest."""
        whole = super().identity()
        return {name: value for name, value in whole.items() if (name, value) != ("form", "json")}


class PairwiseRubricSpec(OrderedSpec):
    """Decides which of two responses fulfils a rubric better: the gatekeeper first, then every criterion, then the verdict."""

    kind: Literal["pairwise_rubric"] = "pairwise_rubric"
    scale: Scale = knob("tie", _SCALE_HELP)
    system: str = system_text(
        f"You compare two responses to the same conversation by a rubric, and by nothing else.\n{DATA_NOTICE}\n{_FAIR}\n"
        "Work in this order. First find the gatekeeper: the hard rule of the rubric whose violation would settle the "
        "comparison, most of all one that the conversation states outright; if the rubric has no hard rule, say 0. Decide "
        "for each response whether it keeps it. Then go through every criterion by number and decide for each response "
        "whether it is met. Then give the verdict: a response that breaks the gatekeeper loses to one that keeps it; "
        "otherwise the criteria decide, weighed by their points; negative points are for faults.\n" + ANSWER_NOTICE
    )
    prompt: str = prompt_text(_SHOWN + "Compare the responses by this rubric:\n{{criteria}}")


class _TwoWay(AnswerSchema):
    verdict: Literal["A", "B"]


class _ThreeWay(AnswerSchema):
    verdict: Literal["A", "B", "tie"]


class _FiveWay(AnswerSchema):
    verdict: Literal["A much better", "A better", "tie", "B better", "B much better"]


class _Reasoned(AnswerSchema):
    reasons: list[str] = Field(description="The weightiest first")


class ForcedAnswer(_TwoWay, _Reasoned):
    pass


class TieAnswer(_ThreeWay, _Reasoned):
    pass


class FiveAnswer(_FiveWay, _Reasoned):
    pass


class Gatekeeper(AnswerSchema):
    number: int = Field(ge=0, description="The criterion's number, or 0 when no hard rule decides")
    explanation: str
    a_meets: bool
    b_meets: bool


class BothMet(AnswerSchema):
    number: int
    explanation: str
    a_meets: bool
    b_meets: bool


class _Checked(AnswerSchema):
    gatekeeper: Gatekeeper
    criteria: list[BothMet]


class ForcedRubricAnswer(_TwoWay, _Checked):
    pass


class TieRubricAnswer(_ThreeWay, _Checked):
    pass


class FiveRubricAnswer(_FiveWay, _Checked):
    pass


_TAGS = ("response", "response")
_PLAIN: dict[str, type[AnswerSchema]] = {"forced": ForcedAnswer, "tie": TieAnswer, "five": FiveAnswer}
_RUBRIC: dict[str, type[AnswerSchema]] = {
    "forced": ForcedRubricAnswer,
    "tie": TieRubricAnswer,
    "five": FiveRubricAnswer,
}
_WORDS = {
    "forced": '"A" or "B"',
    "tie": '"A", "B" or "tie"',
    "five": '"A much better", "A better", "tie", "B better" or "B much better"',
}


def _both_orders(
    spec: OrderedSpec, given: JudgeInput, values: dict[str, str], more: dict[str, Any], tags: tuple[str, str] = _TAGS
) -> Iterator[Asked]:
    if len(given.responses) != 2:
        raise InputProblem(f"a pair needs 2 responses; the input has {len(given.responses)}")
    (a, text_a), (b, text_b) = given.responses.items()
    subject = {**given.subject, "example": given.example, "a": a, "b": b, **more}
    for order in ("given", "swapped") if spec.order == "both" else (spec.order,):
        first, second = (text_a, text_b) if order == "given" else (text_b, text_a)
        shown = {"response_a": fence(tags[0], first), "response_b": fence(tags[1], second)}
        yield Asked({**values, **shown}, {**subject, "order": order})


def _ask_plain(spec: PairwiseSpec, given: JudgeInput) -> Iterator[Asked]:
    reference = fence("reference", given.reference) if given.reference else ""
    tags = ("A", "B") if spec.form == "lines" else _TAGS
    yield from _both_orders(spec, given, {"conversation": prompt_of(given), "reference": reference}, {}, tags)


def _ask_rubric(spec: PairwiseRubricSpec, given: JudgeInput) -> Iterator[Asked]:
    if not given.criteria:
        raise InputProblem("the rubric has no criteria")
    lines = [f"({c.kind} rule, {c.points:+g} points) {c.text}" for c in given.criteria]
    values = {"conversation": prompt_of(given), "criteria": fence("rubric", numbered_list(lines))}
    values["reference"] = fence("reference", given.reference) if given.reference else ""
    yield from _both_orders(spec, given, values, {"criteria": [criterion.id for criterion in given.criteria]})


def _read_plain(spec: PairwiseSpec, subject: Mapping[str, Any], answer: Any) -> Reading:
    reasons = [reason for reason in answer.reasons if reason.strip()]
    return Reading({"verdict": answer.verdict, "strength": STRENGTHS[answer.verdict], "reasons": reasons})


def _read_plain_text(spec: PairwiseSpec, raw: str, complete: bool) -> Reading:
    """Reads lines. The verdict comes last, so a judgement that was cut has a verdict only if nothing of it is missing."""
    found = read_lines(raw)
    if found.verdict is None:
        return Reading(None, found.problem if complete else f"the answer was cut before its end; {found.problem}")
    return Reading({"verdict": found.verdict, "strength": STRENGTHS[found.verdict], "reasons": list(found.reasons)})


def _plain_problems(spec: PairwiseSpec) -> Iterator[FieldProblem]:
    if spec.form == "lines" and spec.scale != "five":
        yield FieldProblem("scale", "judges that answer in lines have five verdicts")
    if spec.form == "lines" and ANSWER_NOTICE.partition("\n")[0] in spec.system:
        yield FieldProblem("system", "asks for a JSON object, and the form is lines; take that sentence out")


def _read_rubric(spec: PairwiseRubricSpec, subject: Mapping[str, Any], answer: Any) -> Reading:
    """The verdict counts by itself. Criteria that the judge passed over are missing; the judge is then asked again."""
    ids = subject["criteria"]
    read = by_number([each.model_dump() for each in answer.criteria], ids, "criterion")
    keeper = answer.gatekeeper.model_dump()
    number = keeper.pop("number")
    problem = read.problem
    if number > len(ids):
        problem = "; ".join(filter(None, ["the gatekeeper is not a criterion of the rubric", problem]))
    keeper["criterion"] = ids[number - 1] if 1 <= number <= len(ids) else None
    parsed = read.parsed or {"items": {}, "missing": list(ids)}
    return Reading(
        {"verdict": answer.verdict, "strength": STRENGTHS[answer.verdict], "gatekeeper": keeper, **parsed}, problem
    )


def _plain_format(spec: PairwiseSpec) -> str:
    if spec.form == "lines":
        return FORM
    return f'{{"reasons": ["the weightiest reason", ...], "verdict": {_WORDS[spec.scale]}}}'


def _rubric_format(spec: PairwiseRubricSpec) -> str:
    met = '"explanation": "one sentence", "a_meets": true or false, "b_meets": true or false'
    return (
        f'{{"gatekeeper": {{"number": 1, {met}}}, "criteria": [{{"number": 1, {met}}}, ...], '
        f'"verdict": {_WORDS[spec.scale]}}}'
    )


KINDS = (
    Kind(
        name="pairwise",
        title="Pairwise",
        help="Says which of two responses is better, with reasons, without a rubric.",
        spec=PairwiseSpec,
        pair=True,
        variables=pick("conversation", "reference", "response_a", "response_b"),
        required=("response_a", "response_b"),
        decides=("verdict",),
        answer=lambda spec: _PLAIN[spec.scale] if spec.form == "json" else None,
        answer_format=_plain_format,
        ask=_ask_plain,
        read=_read_plain,
        read_text=_read_plain_text,
        more_problems=_plain_problems,
    ),
    Kind(
        name="pairwise_rubric",
        title="Pairwise with rubric",
        help="Compares two responses by a rubric: gatekeeper first, every criterion for each, then the verdict.",
        spec=PairwiseRubricSpec,
        pair=True,
        variables=pick("conversation", "reference", "response_a", "response_b", "criteria"),
        required=("response_a", "response_b", "criteria"),
        decides=("verdict",),
        answer=lambda spec: _RUBRIC[spec.scale],
        answer_format=_rubric_format,
        ask=_ask_rubric,
        read=_read_rubric,
    ),
)
