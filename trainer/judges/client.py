"""An asynchronous client for OpenAI-compatible chat endpoints.

A judge has hundreds of calls in flight, and the usual SDKs need more processor time for each open connection; `connections` replaces
them.
"""

import asyncio
import random
from time import perf_counter
from types import TracebackType
from typing import Any, Self
from urllib.parse import urlsplit

from trainer import tracing
from trainer.product import USER_AGENT

from .budget import Budget, Hold
from .chat import Chat, ChatReply, ChatRequest, EndpointProblem, Prices, Target, cost
from .connections import BadAddress, ConnectionRefused, Connections, TooLong
from .gate import Gate, SharedLimits
from .replies import problem, read
from .templates import canonical

__all__ = ["Budget", "Chat", "ChatClient", "ChatReply", "ChatRequest", "EndpointProblem", "Prices", "Target", "cost"]

LONGEST_REPLY = 8_000_000  # bytes; a chat reply has a few thousand
FIRST_PAUSE_S, LONGEST_PAUSE_S = 0.5, 30.0
LONGEST_RETRY_AFTER_S = 300.0  # a longer pause than this is not waited for
MOST_TAILS = 100  # encoded settings that are kept: a run has one for each seed
SHORTEST_KEY = 8  # local servers take any word as key, such as EMPTY: nothing to hide


class ChatClient:
    """`async with ChatClient(target, budget) as client: reply = await client.chat(request)`, from any number of tasks.

    At most `target.concurrency` requests are in flight, together with those of other runs if they `share` the endpoint. A call that pauses
    before another attempt leaves its place to others. Only this client charges the `budget`, if there is one.
    """

    def __init__(self, target: Target, budget: Budget | None = None, share: SharedLimits | None = None) -> None:
        self.target, self.budget = target, budget
        self._gate = Gate(target.concurrency, target.requests_per_minute, share)
        self._tails: dict[Any, tuple[Any, str]] = {}
        self._connections: Connections | None = None
        base = target.url.rstrip("/")
        self._url = base if base.endswith("/chat/completions") else f"{base}/chat/completions"

    async def __aenter__(self) -> Self:
        headers = {"Content-Type": "application/json", "User-Agent": USER_AGENT}
        if self.target.key:
            headers["Authorization"] = f"Bearer {self.target.key}"
        try:
            self._connections = Connections(self._url, headers, longest=LONGEST_REPLY, refuse=self.target.refuse)
        except BadAddress as error:
            raise EndpointProblem("refused", self._hidden(str(error))) from None
        await self._gate.__aenter__()
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        if self._connections is not None:
            self._connections.close()
        await self._gate.__aexit__(kind, error, trace)

    async def chat(self, request: ChatRequest) -> ChatReply:
        """The reply to `request`, whole or cut (`finish_reason` "length").

        Raises EndpointProblem: at once if another attempt would end in the same way, else after `target.retries` more attempts with
        pauses that double. If the endpoint sends a Retry-After, all calls of this client wait this long.
        """
        data = self.encoded(request)
        for attempt in range(1, self.target.retries + 2):
            try:
                return await self._charged(request, data, attempt)
            except EndpointProblem as found:
                if found.retry_after_s is not None:
                    self._gate.pace.rest(min(found.retry_after_s, LONGEST_RETRY_AFTER_S))
                if not found.retryable or attempt > self.target.retries:
                    raise
                pause = self._pause_s(found, attempt)
            await asyncio.sleep(pause)
        raise AssertionError("unreachable: the last attempt returns or raises")

    def body(self, request: ChatRequest) -> dict[str, Any]:
        """The request as OpenAI's API takes it."""
        return {"messages": request.messages, **self._settings(request)}

    def encoded(self, request: ChatRequest) -> bytes:
        """The request as JSON. Parts that all calls of a run share are encoded only once."""
        key = (id(request.schema), request.sampling, request.seed)
        kept = self._tails.get(key)
        if kept is None or kept[0] is not request.schema:
            if len(self._tails) >= MOST_TAILS:
                self._tails.clear()
            kept = self._tails[key] = (request.schema, canonical(self._settings(request))[1:])
        return f'{{"messages":{request.encoded},{kept[1]}'.encode("utf-8", "replace")

    def _settings(self, request: ChatRequest) -> dict[str, Any]:
        sampling = request.sampling
        body: dict[str, Any] = {
            "model": self.target.model,
            "temperature": sampling.temperature,
            "top_p": sampling.top_p,
            self.target.tokens_field: sampling.max_tokens,
        }
        seed = sampling.seed if request.seed is None else request.seed
        if seed is not None:
            body["seed"] = seed
        if request.schema is not None and self.target.supports_schema:
            named = {"name": "answer", "schema": request.schema, "strict": True}
            body["response_format"] = {"type": "json_schema", "json_schema": named}
        return body

    async def post(self, data: bytes) -> tuple[bytes, float]:
        """One attempt within the limits on concurrency and rate: (answer, seconds). Raises EndpointProblem."""
        if self._connections is None:
            raise RuntimeError("use the client as `async with ChatClient(...) as client`")
        await self._gate.enter()
        try:
            return await self._exchange(self._connections, data)
        finally:
            self._gate.leave()

    async def _charged(self, request: ChatRequest, data: bytes, attempt: int) -> ChatReply:
        """One attempt, charged to the budget if there is one."""
        if self.budget is None:
            return await self._attempt(request, data, attempt)
        hold = await self.budget.hold(request, self.target.prices)
        reply, billed = None, True
        try:
            reply = await self._attempt(request, data, attempt)
        except EndpointProblem as found:
            # an answer that cannot be read, or comes too late, must still be paid
            billed = found.code in ("bad_response", "timeout")
            raise
        finally:
            await self._settle(hold, reply, billed)
        return reply

    async def _settle(self, hold: Hold, reply: ChatReply | None, billed: bool) -> None:
        if self.budget is not None:
            await self.budget.settle(hold, reply, self.target.prices, billed=billed)

    async def _attempt(self, request: ChatRequest, data: bytes, attempt: int) -> ChatReply:
        """One attempt, reported to programs that follow traces: the model and the number of tokens, never the texts."""
        asked = self._asked(request, attempt) if tracing.is_on() else {}
        with tracing.span(f"chat {self.target.model}", "CLIENT", asked) as told:
            try:
                reply = await self._replied(data, attempt)
            except EndpointProblem as found:
                told.failed(found.code)
                raise
            told.set(
                {
                    "gen_ai.usage.input_tokens": reply.prompt_tokens,
                    "gen_ai.usage.output_tokens": reply.completion_tokens,
                    "gen_ai.usage.cache_read.input_tokens": reply.cached_tokens,
                }
            )
        return reply

    def _asked(self, request: ChatRequest, attempt: int) -> dict[str, tracing.Value | None]:
        """The attributes of the semantic conventions for calls of models, for any provider with OpenAI's API."""
        place, sampling = urlsplit(self._url), request.sampling
        return {
            "gen_ai.operation.name": "chat",
            "gen_ai.provider.name": "openai",
            "gen_ai.request.model": self.target.model,
            "gen_ai.request.temperature": sampling.temperature,
            "gen_ai.request.top_p": sampling.top_p,
            "gen_ai.request.max_tokens": sampling.max_tokens,
            "gen_ai.request.seed": sampling.seed if request.seed is None else request.seed,
            "server.address": place.hostname,
            "server.port": place.port or (443 if place.scheme == "https" else 80),
            "http.request.resend_count": attempt - 1 or None,
        }

    async def _replied(self, data: bytes, attempt: int) -> ChatReply:
        answer, seconds = await self.post(data)
        try:
            return read(answer, seconds, attempt)
        except EndpointProblem as found:
            raise EndpointProblem(found.code, self._hidden(found.message), retryable=found.retryable) from None

    async def _exchange(self, connections: Connections, data: bytes) -> tuple[bytes, float]:
        started = perf_counter()
        try:
            answer = await connections.post(data, self.target.timeout_s)
        except OSError as error:  # TimeoutError is one
            raise self._unreached(error) from error
        if answer.status != 200:
            raise problem(answer.status, answer.headers, self._hidden(answer.body.decode("utf-8", "replace")))
        return answer.body, perf_counter() - started

    def _unreached(self, error: OSError) -> EndpointProblem:
        if isinstance(error, TooLong):
            return EndpointProblem("bad_response", str(error))
        if isinstance(error, ConnectionRefused):
            return EndpointProblem("refused", str(error))
        if isinstance(error, TimeoutError):
            return EndpointProblem("timeout", f"no complete answer within {self.target.timeout_s:g} s", retryable=True)
        return EndpointProblem("down", str(error) or type(error).__name__, retryable=True)

    def _hidden(self, text: str) -> str:
        """Hides the key: some endpoints quote a key that they refuse, and messages are stored and shown."""
        key = self.target.key
        return text.replace(key, "[key]") if key and len(key) >= SHORTEST_KEY else text

    def _pause_s(self, found: EndpointProblem, attempt: int) -> float:
        """The seconds before the next attempt. They are spread, so that calls that failed together do not come back together."""
        if found.retry_after_s is not None:
            if found.retry_after_s > LONGEST_RETRY_AFTER_S:
                raise EndpointProblem(found.code, f"{found.message} (asks to wait {found.retry_after_s:.0f} s)")
            return found.retry_after_s * random.uniform(1.0, 1.1)  # noqa: S311 - spreads load, guards nothing
        return min(FIRST_PAUSE_S * 2.0 ** (attempt - 1), LONGEST_PAUSE_S) * random.uniform(0.5, 1.0)  # noqa: S311
