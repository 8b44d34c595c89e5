"""Requests to chat endpoints, their replies, and all problems that a call can have."""

from collections.abc import Callable
from dataclasses import dataclass, field
from decimal import Decimal
from functools import cached_property
from typing import Any, Literal, Protocol, get_args

from .sampling import Sampling
from .templates import canonical, scrub

Code = Literal["down", "timeout", "rate_limited", "refused", "context_overflow", "bad_response", "budget"]
CODES: tuple[Code, ...] = get_args(Code)
MILLION = Decimal(1_000_000)


@dataclass(frozen=True)
class ChatRequest:
    """`schema` is a JSON schema that the reply should follow. Endpoints that cannot enforce a schema never see it.

    `seed` replaces the seed in `sampling`: the samples of one request have different seeds.
    """

    messages: tuple[dict[str, str], ...]
    sampling: Sampling
    schema: dict[str, Any] | None = None
    seed: int | None = None

    @cached_property
    def encoded(self) -> str:
        """`messages` as canonical JSON. They are the largest part of the text that is hashed, sent and stored, so they are encoded only once."""
        return canonical(self.messages)


@dataclass(frozen=True)
class ChatReply:
    """`finish_reason` is "length" if the text was cut. Counts of tokens are None if the endpoint reports none.

    `latency_s` is the time of the attempt that answered; `attempts` counts it and all before it.
    """

    text: str
    finish_reason: str
    prompt_tokens: int | None
    cached_tokens: int | None
    completion_tokens: int | None
    latency_s: float
    attempts: int = 1


@dataclass(frozen=True)
class Prices:
    """Money per million tokens, in the unit of the endpoint's price table."""

    prompt: Decimal
    completion: Decimal

    def cost(self, prompt_tokens: int, completion_tokens: int) -> Decimal:
        return (self.prompt * prompt_tokens + self.completion * completion_tokens) / MILLION


@dataclass(frozen=True)
class Target:
    """An OpenAI-compatible endpoint: `url` is its base, such as https://api.example.org/v1.

    `refuse` is called with every IP address right before a connection to it. It returns why the address is refused, or "": a name that
    was public when it was saved may point to an inner address now. `timeout_s` is for one attempt.
    """

    url: str
    model: str
    key: str | None = field(default=None, repr=False)
    concurrency: int = 8
    requests_per_minute: int | None = None
    timeout_s: float = 120.0
    retries: int = 3
    supports_schema: bool = False
    prices: Prices | None = None
    tokens_field: str = "max_tokens"  # newer hosted models take only max_completion_tokens
    refuse: Callable[[str], str] | None = field(default=None, compare=False, repr=False)


class EndpointProblem(Exception):
    """The call had no reply. `code` is for programs; the message says what happened and never holds the key.

    `retryable`: the same call may succeed later. `retry_after_s` is the pause that the endpoint asked for.
    """

    def __init__(
        self, code: Code, message: str, *, retryable: bool = False, retry_after_s: float | None = None
    ) -> None:
        message = scrub(message)  # it may quote the endpoint, and is stored
        super().__init__(message)
        self.code: Code = code
        self.message = message
        self.retryable = retryable
        self.retry_after_s = retry_after_s


class Chat(Protocol):
    """Any client that answers chat requests. Raises EndpointProblem."""

    async def chat(self, request: ChatRequest) -> ChatReply: ...


def cost(reply: ChatReply, prices: Prices | None) -> Decimal | None:
    """The cost of the reply; None if prices or counts of tokens are not known."""
    if prices is None or reply.prompt_tokens is None or reply.completion_tokens is None:
        return None
    return prices.cost(reply.prompt_tokens, reply.completion_tokens)
