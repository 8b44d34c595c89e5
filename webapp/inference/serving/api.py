"""A model answers over the API, token by token."""

from typing import Annotated, Any, Literal, Self

from django.http import HttpRequest, StreamingHttpResponse
from ninja import Router, Schema
from pydantic import ConfigDict, Field, model_validator

from webapp.accounts.access import require
from webapp.core.requests.openapi import StrictIn, sends

from .. import access
from ..parameters import ModelId
from .stream import stream

router = Router()


class GenerateMessage(StrictIn):
    role: Literal["system", "user", "assistant"]
    content: str = Field(max_length=100_000)


class GenerateIn(Schema):
    """Either `prompt`, which is one message of a user, or `messages`."""

    model_config = ConfigDict(
        extra="forbid", json_schema_extra={"example": {"prompt": "Name three colours.", "max_new_tokens": 64}}
    )

    prompt: str | None = Field(None, min_length=1, max_length=100_000)
    messages: list[GenerateMessage] | None = Field(None, min_length=1, max_length=100)
    max_new_tokens: int = Field(256, ge=1, le=4096)
    temperature: float = Field(0.0, ge=0, le=5, description="0 always takes the most likely token")
    top_p: float = Field(1.0, gt=0, le=1)
    seed: int = Field(0, ge=0, lt=2**31)
    stop: list[Annotated[str, Field(min_length=1, max_length=100)]] = Field([], max_length=8)

    @model_validator(mode="after")
    def _one_question(self) -> Self:
        if (self.prompt is None) == (self.messages is None):
            raise ValueError("give either prompt or messages")
        return self

    def asked(self) -> dict[str, Any]:
        messages = [{"role": "user", "content": self.prompt}]
        if self.messages is not None:
            messages = [message.model_dump() for message in self.messages]
        return {**self.model_dump(exclude={"prompt", "messages"}), "messages": messages}


@router.post(
    "/models/{int:model_id}/generate",
    summary="Let a model answer, token by token",
    openapi_extra=sends("text/event-stream"),
)
def generate(request: HttpRequest, model_id: ModelId, payload: GenerateIn) -> StreamingHttpResponse:
    """Server-sent events: `loading` or `waiting` while nothing can be said yet, `start`, a `token` for each token with the
    `text` it adds, and `done` with the whole text, or `error` with a code (memory, busy, too_long, ended, failed)."""
    membership = require(request)
    model = access.model_write(membership, model_id)
    return stream(model, membership.user_id, payload.asked())
