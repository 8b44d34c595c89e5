"""The questions of a run to the judges of its rewards, which its server passes on, and the answers."""

from typing import Annotated, Literal

from pydantic import Field, JsonValue, StringConstraints

from .base import Record
from .example import Message
from .rubric import Criterion

MAX_QUESTIONS_PER_POST = 200
MAX_VERDICTS_PER_POST = 1000

Digest = Annotated[str, StringConstraints(pattern="^[0-9a-f]{64}$")]


class AskedAbout(Record):
    """The texts that are judged together, by id: one response, or two that are compared, or none if the rubric itself is judged.
    `place` says where in the run they come from."""

    responses: dict[str, str]
    place: str = Field("", max_length=120)


class JudgeQuestion(Record):
    """A question to a judge about responses to one example, usually a group. The same `key` is the same question: if it is sent again,
    no judge is called a second time."""

    key: Digest
    judge: str
    example: str
    conversation: tuple[Message, ...] = ()
    criteria: tuple[Criterion, ...] = ()
    reference: str = ""
    about: tuple[AskedAbout, ...] = Field(min_length=1)


class QuestionBatch(Record):
    questions: tuple[JudgeQuestion, ...] = Field(min_length=1, max_length=MAX_QUESTIONS_PER_POST)


class JudgeAnswer(Record):
    """The verdict that is stored under `key` (`trainer.judges.calls.Call.key`). `called`: this question made the call.

    With the `state` failed nobody answered, and to ask again would not help: the fault is in the call itself.
    """

    key: Digest
    state: Literal["done", "missing", "failed"]
    parsed: dict[str, JsonValue] | None
    raw: str
    problem: str
    called: bool
    tokens: int
    cost: float | None
    latency_s: float


class QuestionReply(Record):
    """One line of the answer to a QuestionBatch. `away`: why some calls cannot be made at present; "" if all are answered."""

    key: Digest
    answers: tuple[JudgeAnswer, ...]
    away: str = ""


class OwnVerdict(Record):
    """The answer of a judge whose weights a run or a job holds. `record` is the request as canonical JSON; `key` is made of it. With the
    `state` failed the judge could not be asked: `problem` begins with a code of trainer.judges.chat, and a later run asks again."""

    key: Digest
    record: str
    subject: dict[str, JsonValue]
    state: Literal["done", "missing", "failed"]
    parsed: dict[str, JsonValue] | None
    raw: str
    problem: str
    prompt_tokens: int | None = None
    cached_tokens: int | None = None
    completion_tokens: int | None = None
    latency_s: float = 0.0
    attempts: int = Field(1, ge=1)


class OwnVerdicts(Record):
    """A run sends the `verdicts` of its own judge to the verdict store, and asks for the verdicts that are stored under `keys`."""

    judge: str
    keys: tuple[Digest, ...] = Field((), max_length=MAX_VERDICTS_PER_POST)
    verdicts: tuple[OwnVerdict, ...] = Field((), max_length=MAX_VERDICTS_PER_POST)


class KnownVerdicts(Record):
    """The verdicts that are stored, what the judge may spend in the whole run (None: no limit), and what it has spent. Money is a decimal
    number."""

    answers: tuple[JudgeAnswer, ...]
    budget_tokens: int | None
    budget_money: str | None
    tokens: int
    money: str
