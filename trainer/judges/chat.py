"""What goes to a chat endpoint, what comes back, and everything that can go wrong on the way."""

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
    """`schema` is a JSON schema the reply should follow; endpoints that cannot enforce one never see it.

    `seed` goes before the one in `sampling`: it tells the samples of one request apart.
    """

    messages: tuple[dict[str, str], ...]
    sampling: Sampling
    schema: dict[str, Any] | None = None
    seed: int | None = None

    @cached_property
    def encoded(self) -> str:
        """`messages` as canonical JSON. They are most of what is hashed, sent and stored, and are encoded once."""
        return canonical(self.messages)


@dataclass(frozen=True)
class ChatReply:
    """`finish_reason` is "length" where the text was cut. Token counts are None where the endpoint reports none.

    `latency_s` is of the attempt that answered; `attempts` counts it and those before.
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

    `refuse` is asked with every IP address right before it is connected to and gives the reason why not, or "":
    a name that was public when it was saved may point inwards by now. `timeout_s` is for one attempt.
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
    """The call brought no reply. `code` is for programs; the message says what happened and never holds the key.

    `retryable`: the same call may succeed later. `retry_after_s` is what the endpoint asked for.
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
    """Whatever answers chat requests. Raises EndpointProblem."""

    async def chat(self, request: ChatRequest) -> ChatReply: ...


def cost(reply: ChatReply, prices: Prices | None) -> Decimal | None:
    """What the reply cost; None where prices or token counts are not known."""
    if prices is None or reply.prompt_tokens is None or reply.completion_tokens is None:
        return None
    return prices.cost(reply.prompt_tokens, reply.completion_tokens)
