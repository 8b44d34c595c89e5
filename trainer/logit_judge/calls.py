"""What a local model is asked, one JSON line per call."""

import json
from collections.abc import Iterable, Iterator, Sequence
from typing import Literal, Self

from pydantic import Field, ValidationError, model_validator

from trainer.contracts import Message
from trainer.contracts.base import Record

OWN_WORDING = "criterion-1"
"""The question below, by name: a threshold holds for the wording it was measured with."""

_JUDGE = "You check the answer of an assistant against one criterion. You reply with one word, Yes or No."


class LocalCall(Record):
    """A question to the model: `messages` as they are, or a criterion on the answer to a conversation in our wording.

    `reply`: `yes_no` reads the probability of yes from one forward pass; `text` generates with the sampling given.
    """

    key: str = Field(min_length=1, max_length=200)
    messages: tuple[Message, ...] = ()
    conversation: tuple[Message, ...] = ()
    response: str | None = None
    criterion: str = ""
    reply: Literal["yes_no", "text"] = "yes_no"
    temperature: float = Field(default=0.0, ge=0)
    top_p: float = Field(default=1.0, gt=0, le=1)
    max_tokens: int = Field(default=256, ge=1, le=8192)
    seed: int = Field(default=0, ge=0)

    @model_validator(mode="after")
    def _one_question(self) -> Self:
        own = bool(self.conversation) and self.response is not None and bool(self.criterion.strip())
        if bool(self.messages) == own:
            raise ValueError("give either messages, or a conversation with its response and a criterion")
        if own and self.reply == "text":
            raise ValueError(
                "a criterion in the judge's own wording is answered by yes or no; give messages for a text"
            )
        return self

    @property
    def question(self) -> str:
        """The name of the wording, to which thresholds belong; "" where the caller worded it."""
        return "" if self.messages else OWN_WORDING

    def asked(self) -> tuple[Message, ...]:
        """The messages the model sees: what varies between criteria comes last."""
        if self.messages:
            return self.messages
        return criterion_messages(self.conversation, self.response or "", self.criterion)


def criterion_messages(conversation: Sequence[Message], response: str, criterion: str) -> tuple[Message, ...]:
    """The question in our wording (`OWN_WORDING`): criteria on one answer share all but their own words."""
    said = "\n\n".join(f"{message.role.capitalize()}: {message.content}" for message in conversation)
    answer = f"Answer to check:\n{response}\n\nEnd of the answer. Yes or No: does it meet this criterion?"
    content = f"{said}\n\n{answer}\nCriterion: {criterion.strip()}"
    return Message(role="system", content=_JUDGE), Message(role="user", content=content)


def read_calls(lines: Iterable[str]) -> Iterator[LocalCall]:
    """Raises ValueError with the number of the line that cannot be read and the reason."""
    for number, line in enumerate(lines, 1):
        if not line.strip():
            continue
        try:
            yield LocalCall.model_validate_json(line)
        except ValidationError as error:
            first = error.errors(include_url=False)[0]
            where = ".".join(map(str, first["loc"])) or "the line"
            raise ValueError(f"line {number}: {where}: {first['msg']}") from error


def answered(lines: Iterable[str]) -> set[str]:
    """Keys of the verdicts that a file holds already."""
    return {json.loads(line)["key"] for line in lines if line.strip()}
