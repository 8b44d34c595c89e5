"""Calls to a local model, one JSON line per call."""

import json
from collections.abc import Iterable, Iterator
from typing import Literal, Self

from pydantic import Field, ValidationError, model_validator

from trainer.contracts import Criterion, Message
from trainer.contracts.base import Record
from trainer.judges.calls import expand
from trainer.judges.inputs import JudgeInput
from trainer.judges.kinds.criteria import CriterionSpec
from trainer.judges.local import ONE_WORD, wording

USUAL = CriterionSpec()
"""The usual criterion judge: the wording of calls that bring a conversation, a response and a criterion."""


class LocalCall(Record):
    """A question to the model: `messages`, or a criterion on the response to a conversation in the usual wording.

    With `reply` `yes_no`, the probability of yes is read from one forward pass; with `text` the model generates with the given sampling.
    `wording` names the templates behind `messages`, because a threshold holds for the wording it was measured with.
    """

    key: str = Field(min_length=1, max_length=200)
    messages: tuple[Message, ...] = ()
    conversation: tuple[Message, ...] = ()
    response: str | None = None
    criterion: str = ""
    wording: str = ""
    reply: Literal["yes_no", "text"] = "yes_no"
    temperature: float = Field(default=0.0, ge=0)
    top_p: float = Field(default=1.0, gt=0, le=1)
    max_tokens: int = Field(default=256, ge=1)
    seed: int = Field(default=0, ge=0, lt=2**64)

    @model_validator(mode="after")
    def _one_question(self) -> Self:
        own = bool(self.conversation) and self.response is not None and bool(self.criterion.strip())
        if bool(self.messages) == own:
            raise ValueError("give either messages, or a conversation with its response and a criterion")
        if own and self.reply == "text":
            raise ValueError("a criterion is answered by yes or no; give messages for a text")
        return self

    @property
    def worded(self) -> str:
        return self.wording if self.messages else wording(USUAL)

    def asked(self) -> tuple[Message, ...]:
        """The messages the model sees."""
        messages = self.messages or criterion_messages(self.conversation, self.response or "", self.criterion)
        if self.reply == "text":
            return messages
        *before, last = messages
        return (*before, Message(role=last.role, content=last.content + ONE_WORD))


def criterion_messages(conversation: tuple[Message, ...], response: str, criterion: str) -> tuple[Message, ...]:
    """The messages of the usual criterion judge."""
    criteria = (Criterion(id="c", text=criterion, points=1),)
    given = JudgeInput("", conversation=conversation, responses={"r": response}, criteria=criteria)
    [call] = expand(USUAL, "", given)
    return tuple(Message.model_validate(message) for message in call.request.messages)


def read_calls(lines: Iterable[str]) -> Iterator[LocalCall]:
    """The calls of the lines. Raises ValueError with the number of a line that cannot be read, and the reason."""
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
    """The keys of the verdicts that a file has already."""
    return {json.loads(line)["key"] for line in lines if line.strip()}
