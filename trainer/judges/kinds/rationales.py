"""Reasons are split, matched with human reasons, and tagged (Rationale Consistency / MetaJudge, 2025)."""

from collections.abc import Iterator, Mapping
from typing import Any, Literal

from pydantic import Field

from ..answers import AnswerSchema, Reading
from ..base import ANSWER_NOTICE, DATA_NOTICE, Asked, BaseSpec, Kind, prompt_text, system_text
from ..inputs import InputProblem, JudgeInput
from ..templates import conversation, fence, numbered_list
from .shared import by_number, pick, texts

FLAWS = {
    "F1": "style only: it rests on form, tone or length",
    "F2": "generic correctness: it calls something right or wrong without saying what",
    "F3": "generic relevance: it calls something on or off topic without saying what",
    "F4": "one-sided praise: it praises one response without a word on the other",
    "F5": "unfalsifiable: nothing in the responses could prove it wrong",
    "F6": "non sequitur: even if true it does not speak for the verdict",
    "F7": "contradiction: it contradicts the responses, another reason or the verdict",
}
RESTS_ON = ("evidence", "criterion", "generic")
Flaw = Literal["F1", "F2", "F3", "F4", "F5", "F6", "F7"]


class ReasonsSpec(BaseSpec):
    """Splits a written rationale into atomic reasons, and lists what it drops with the reason."""

    kind: Literal["reasons"] = "reasons"
    system: str = system_text(
        "You take a written rationale for a preference between two responses apart into single reasons. Each reason says one "
        "concrete thing and names its evidence as the rationale does; keep the writer's meaning, add nothing, and list the "
        "same reason once. Drop what is vague or contradicts another statement, and say why you dropped it.\n"
        f"{DATA_NOTICE}\n{ANSWER_NOTICE}"
    )
    prompt: str = prompt_text("The reasons in this rationale, in its order:\n{{rationale}}")


class ReasonMatcherSpec(BaseSpec):
    """The similarity of each of a judge's reasons to each of the human reasons, 0 to 1."""

    kind: Literal["reason_matcher"] = "reason_matcher"
    system: str = system_text(
        "You say how far reasons that a judge gave for a preference are the reasons that people gave. For every pair: 1 when "
        "both make the same point from the same evidence, 0.5 when they make the same point and only one is concrete, 0 when "
        "they are about different things or disagree. Sharing a topic is not enough.\n"
        f"{DATA_NOTICE}\nGive one row per human reason with one score per judge's reason, in their order.\n{ANSWER_NOTICE}"
    )
    prompt: str = prompt_text("Human reasons:\n{{human_reasons}}\n\nThe judge's reasons:\n{{model_reasons}}")


class FlawsSpec(BaseSpec):
    """Tags each of a judge's reasons by its basis and by its flaws."""

    kind: Literal["flaws"] = "flaws"
    system: str = system_text(
        "You examine the reasons a judge gave for preferring one of two responses. For each reason say what it rests on: "
        "`evidence` when it points at something in a response that can be checked, `criterion` when it names a demand and "
        "whether it is met without pointing at the place, `generic` otherwise. Then tag its flaws, none or several:\n"
        + "\n".join(f"{tag} {meaning}" for tag, meaning in FLAWS.items())
        + f"\n{DATA_NOTICE}\nAnswer on every number once.\n{ANSWER_NOTICE}"
    )
    prompt: str = prompt_text(
        "The conversation:\n{{conversation}}\n\nResponse A:\n{{response_a}}\n\nResponse B:\n{{response_b}}\n\n"
        "The judge's verdict: {{verdict}}\n\nIts reasons:\n{{model_reasons}}"
    )


class Dropped(AnswerSchema):
    text: str
    why: str


class ReasonsAnswer(AnswerSchema):
    reasons: list[str]
    dropped: list[Dropped] = Field(default_factory=list)


class Row(AnswerSchema):
    human: int
    scores: list[float]


class RowsAnswer(AnswerSchema):
    rows: list[Row]


class TaggedReason(AnswerSchema):
    number: int
    explanation: str
    rests_on: Literal["evidence", "criterion", "generic"]
    flaws: list[Flaw]


class FlawsAnswer(AnswerSchema):
    reasons: list[TaggedReason]


def _ask_reasons(spec: ReasonsSpec, given: JudgeInput) -> Iterator[Asked]:
    if not given.rationale.strip():
        raise InputProblem("there is no rationale")
    values = {"conversation": conversation(given.conversation), "rationale": fence("rationale", given.rationale)}
    yield Asked(values, {**given.subject, "example": given.example})


def _ask_matcher(spec: ReasonMatcherSpec, given: JudgeInput) -> Iterator[Asked]:
    human, model = texts(given.human_reasons, "human reasons"), texts(given.model_reasons, "model reasons")
    values = {
        "conversation": conversation(given.conversation),
        "human_reasons": fence("human", numbered_list(human)),
        "model_reasons": fence("judge", numbered_list(model)),
    }
    yield Asked(values, {**given.subject, "example": given.example, "human": len(human), "model": len(model)})


def _ask_flaws(spec: FlawsSpec, given: JudgeInput) -> Iterator[Asked]:
    reasons = texts(given.model_reasons, "reasons")
    if len(given.responses) != 2:
        raise InputProblem(f"reasons are about 2 responses; the input has {len(given.responses)}")
    a, b = given.responses.values()
    values = {
        "conversation": conversation(given.conversation),
        "response_a": fence("response", a),
        "response_b": fence("response", b),
        "verdict": fence("verdict", given.verdict) if given.verdict else "not known",
        "model_reasons": fence("reasons", numbered_list(reasons)),
    }
    yield Asked(values, {**given.subject, "example": given.example, "reasons": len(reasons)})


def _read_reasons(spec: ReasonsSpec, subject: Mapping[str, Any], answer: ReasonsAnswer) -> Reading:
    reasons = [reason for reason in answer.reasons if reason.strip()]
    return Reading({"reasons": reasons, "dropped": [each.model_dump() for each in answer.dropped]})


def _read_rows(spec: ReasonMatcherSpec, subject: Mapping[str, Any], answer: RowsAnswer) -> Reading:
    """`scores`: human x model. With a row or a score too few or too many there is no matrix: nothing is filled in with 0."""
    rows = {row.human: row.scores for row in answer.rows}
    if len(rows) != len(answer.rows) or set(rows) != set(range(1, subject["human"] + 1)):
        return Reading(None, f"rows {sorted(row.human for row in answer.rows)}; asked for 1 to {subject['human']}")
    for number, scores in sorted(rows.items()):
        if len(scores) != subject["model"]:
            return Reading(None, f"row {number} has {len(scores)} scores; asked for {subject['model']}")
        if not all(0 <= score <= 1 for score in scores):
            return Reading(None, f"row {number} has a score outside 0 to 1")
    return Reading({"scores": [rows[number] for number in sorted(rows)]})


def _read_flaws(spec: FlawsSpec, subject: Mapping[str, Any], answer: FlawsAnswer) -> Reading:
    """`items` by the place of the reason, from 0. The places are texts, because JSON has no other keys."""
    places = [str(place) for place in range(subject["reasons"])]
    return by_number([each.model_dump(mode="json") for each in answer.reasons], places, "reason")


KINDS = (
    Kind(
        name="reasons",
        title="Reasons",
        help="Takes a written rationale apart into atomic reasons.",
        spec=ReasonsSpec,
        variables={**pick("conversation"), "rationale": "the rationale as it was written"},
        required=("rationale",),
        decides=("reasons",),
        answer=lambda spec: ReasonsAnswer,
        answer_format=lambda spec: '{"reasons": ["a reason", ...], "dropped": [{"text": "...", "why": "..."}, ...]}',
        ask=_ask_reasons,
        read=_read_reasons,
    ),
    Kind(
        name="reason_matcher",
        title="Reason matcher",
        help="Scores how far each of a judge's reasons is each of the human reasons.",
        spec=ReasonMatcherSpec,
        variables={
            **pick("conversation"),
            "human_reasons": "the reasons people gave, numbered",
            "model_reasons": "the judge's reasons, numbered",
        },
        required=("human_reasons", "model_reasons"),
        decides=("scores",),
        answer=lambda spec: RowsAnswer,
        answer_format=lambda spec: '{"rows": [{"human": 1, "scores": [0 to 1, ...]}, ...]}',
        ask=_ask_matcher,
        read=_read_rows,
    ),
    Kind(
        name="flaws",
        title="Reason classes and flaws",
        help="Tags each of a judge's reasons by what it rests on and by its flaws.",
        spec=FlawsSpec,
        pair=True,
        variables={
            **pick("conversation", "response_a", "response_b"),
            "verdict": "the verdict the reasons were given for",
            "model_reasons": "the judge's reasons, numbered",
        },
        required=("model_reasons",),
        decides=("items",),
        answer=lambda spec: FlawsAnswer,
        answer_format=lambda spec: (
            '{"reasons": [{"number": 1, "explanation": "one sentence", "rests_on": "evidence", "criterion" or "generic", '
            '"flaws": ["F1", ...]}, ...]}'
        ),
        ask=_ask_flaws,
        read=_read_flaws,
    ),
)
