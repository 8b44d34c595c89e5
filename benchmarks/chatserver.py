"""A chat endpoint for tests and measurements, in OpenAI's API: `python -m benchmarks.chatserver [--port P]`.

Each answer takes a fixed time, plus so much per prompt token that is not in the prefix cache and per token written. The
cache works as vLLM's does: prompts are cut into blocks of 16 tokens, and a block counts as cached if it and all before
it were seen. A token is four bytes. Faults can be switched on, for one request or for all.

`GET /stats` tells what was asked and how many requests were in flight on average between the first arrival and the
last; `POST /reset` begins anew.
"""

import argparse
import asyncio
import json
import sys
from collections import deque
from collections.abc import Callable
from pathlib import Path
from time import perf_counter
from typing import Any

from aiohttp import web

TOKEN_BYTES, BLOCK_TOKENS = 4, 16
BLOCK_BYTES = TOKEN_BYTES * BLOCK_TOKENS
FAULTS = (
    *("rate_limited", "error", "down", "slow", "refused", "quota", "context_overflow", "redirect"),
    *("truncated", "not_json", "wrong_shape", "wrong_schema", "oversized", "empty"),
)
SLOW_S = 30.0
Answer = Callable[[dict[str, Any]], str]


def verdict(body: dict[str, Any]) -> str:
    """What a criterion judge would say; the same for the same question."""
    return json.dumps({"explanation": "It does what is asked.", "met": len(_prompt(body)) % 2 == 0})


class ChatServer:
    """`async with ChatServer(latency_s=0.2) as server:` listens on loopback at `server.url`.

    `faults` are taken in order, one per request, "" for none; `fault` holds for all requests once they are used up.
    Attributes may be changed while it runs.
    """

    def __init__(
        self,
        *,
        latency_s: float = 0.0,
        prefill_s: float = 0.0,
        decode_s: float = 0.0,
        answer: Answer = verdict,
        port: int = 0,
        key: str | None = None,
        retry_after: str = "0",
    ) -> None:
        self.latency_s, self.prefill_s, self.decode_s = latency_s, prefill_s, decode_s
        self.answer, self.port, self.key, self.retry_after = answer, port, key, retry_after
        self.logprobs = self.reports_cache = True
        self.only_new_tokens_field = False  # as newer hosted models
        self.fault: str | None = None
        self.faults: deque[str] = deque()
        self.bodies: deque[dict[str, Any]] = deque(maxlen=1000)
        self.reset()

    @property
    def url(self) -> str:
        return f"http://127.0.0.1:{self.port}/v1"

    def reset(self) -> None:
        self.requests = self.in_flight = self.peak = 0
        self.prompt_tokens = self.cached_tokens = self.completion_tokens = 0
        self.arrivals: list[float] = []
        self._blocks: set[int] = set()
        self._area = self._area_at_arrival = self._changed = 0.0
        self.bodies.clear()

    async def __aenter__(self) -> "ChatServer":
        app = web.Application(client_max_size=16_000_000)
        app.router.add_post("/v1/chat/completions", self._chat)
        app.router.add_get("/stats", self._stats)
        app.router.add_post("/reset", self._reset)
        self._runner = web.AppRunner(app, access_log=None, handler_cancellation=True, shutdown_timeout=0.1)
        await self._runner.setup()
        site = web.TCPSite(self._runner, "127.0.0.1", self.port, backlog=2048, reuse_address=True)
        await site.start()
        self.port = self._runner.addresses[0][1]
        return self

    async def __aexit__(self, *_: object) -> None:
        await self._runner.shutdown()
        await self._runner.cleanup()

    def stats(self) -> dict[str, Any]:
        """Counts since the last reset; `mean_in_flight` is over the time from the first arrival to the last."""
        span = self.arrivals[-1] - self.arrivals[0] if len(self.arrivals) > 1 else 0.0
        return {
            "requests": self.requests,
            "peak": self.peak,
            "mean_in_flight": self._area_at_arrival / span if span else None,
            "prompt_tokens": self.prompt_tokens,
            "cached_tokens": self.cached_tokens,
            "completion_tokens": self.completion_tokens,
        }

    def _count(self, change: int) -> None:
        now = perf_counter()
        if self.requests:
            self._area += self.in_flight * (now - self._changed)
        self.in_flight += change
        self._changed = now
        if change > 0:
            self.requests += 1
            self.peak = max(self.peak, self.in_flight)
            self.arrivals.append(now)
            self._area_at_arrival = self._area

    async def _chat(self, request: web.Request) -> web.StreamResponse:
        self._count(+1)
        try:
            body = json.loads(await request.read())
            self.bodies.append(body)
            if self.key is not None and request.headers.get("Authorization") != f"Bearer {self.key}":
                given = request.headers.get("Authorization", "none")
                return _error(401, "invalid_api_key", f"Incorrect API key provided: {given}")
            fault = self.faults.popleft() if self.faults else self.fault
            if fault:
                return await self._faulty(fault, request, body)
            if self.only_new_tokens_field and "max_tokens" in body:
                return _error(400, "unsupported_parameter", "Use 'max_completion_tokens' instead of 'max_tokens'.")
            return web.json_response(await self._complete(body))
        finally:
            self._count(-1)

    async def _complete(self, body: dict[str, Any]) -> dict[str, Any]:
        prompt, cached = self.fill_cache(body)
        text = self.answer(body)
        limit = body.get("max_tokens") or body.get("max_completion_tokens") or 1_000_000
        encoded = text.encode("utf-8", "surrogatepass")
        written, reason = -(-len(encoded) // TOKEN_BYTES), "stop"
        if written > limit:
            written, reason = limit, "length"
            text = encoded[: limit * TOKEN_BYTES].decode("utf-8", "ignore")
        self.completion_tokens += written
        await asyncio.sleep(self.latency_s + (prompt - cached) * self.prefill_s + written * self.decode_s)
        choice: dict[str, Any] = {
            "index": 0,
            "finish_reason": reason,
            "message": {"role": "assistant", "content": text},
        }
        if self.logprobs and body.get("logprobs"):
            choice["logprobs"] = {"content": [{"token": text[:4], "logprob": -0.1, "top_logprobs": []}]}
        usage: dict[str, Any] = {
            "prompt_tokens": prompt,
            "completion_tokens": written,
            "total_tokens": prompt + written,
        }
        if self.reports_cache:
            usage["prompt_tokens_details"] = {"cached_tokens": cached}
        return {"id": "x", "object": "chat.completion", "model": body.get("model"), "choices": [choice], "usage": usage}

    def fill_cache(self, body: dict[str, Any]) -> tuple[int, int]:
        """(tokens of the prompt, those of them in the cache); from now on all its whole blocks are in it."""
        prompt = _prompt(body)
        seen, before, hits, hit = self._blocks, 0, 0, True
        for start in range(0, len(prompt) - BLOCK_BYTES + 1, BLOCK_BYTES):
            before = hash((before, prompt[start : start + BLOCK_BYTES]))
            hit = hit and before in seen
            hits += hit
            seen.add(before)
        tokens = -(-len(prompt) // TOKEN_BYTES)
        self.prompt_tokens += tokens
        self.cached_tokens += hits * BLOCK_TOKENS
        return tokens, hits * BLOCK_TOKENS

    async def _faulty(self, fault: str, request: web.Request, body: dict[str, Any]) -> web.StreamResponse:
        if fault == "down":
            assert request.transport is not None  # noqa: S101 - a request being answered has its connection
            request.transport.abort()
        if fault == "slow":
            await asyncio.sleep(SLOW_S)
        if fault in _ERRORS:
            status, code, message = _ERRORS[fault]
            answer = _error(status, code, message)
            if fault == "rate_limited":
                answer.headers["Retry-After"] = self.retry_after
            return answer
        if fault == "redirect":
            return web.Response(status=307, headers={"Location": "http://127.0.0.1:1/v1/chat/completions"})
        if fault in _BODIES:
            return web.Response(
                text=_BODIES[fault], content_type="text/html" if fault == "not_json" else "application/json"
            )
        if fault == "oversized":
            return web.Response(body=b" " * 9_000_000, content_type="application/json")
        answered = await self._complete(body)
        choice = answered["choices"][0]
        if fault == "truncated":
            choice["finish_reason"], choice["message"]["content"] = "length", choice["message"]["content"][:10]
        elif fault == "wrong_schema":
            choice["message"]["content"] = '{"colour": "blue"}'
        return web.json_response(answered)

    async def _stats(self, _: web.Request) -> web.Response:
        return web.json_response(self.stats())

    async def _reset(self, _: web.Request) -> web.Response:
        self.reset()
        return web.json_response({})


_ERRORS = {
    "rate_limited": (429, "rate_limit_exceeded", "Rate limit reached"),
    "quota": (429, "insufficient_quota", "You exceeded your current quota"),
    "error": (500, "internal_error", "Something broke"),
    "refused": (400, "invalid_request_error", "temperature does not suit this model"),
    "context_overflow": (
        400,
        "context_length_exceeded",
        "This model's maximum context length is 8192 tokens, the request has 9001",
    ),
}
_BODIES = {"not_json": "<html>It works!</html>", "wrong_shape": '{"result": "fine"}', "empty": ""}


def _prompt(body: dict[str, Any]) -> bytes:
    return "".join(f"<{m['role']}>{m['content']}" for m in body["messages"]).encode("utf-8", "surrogatepass")


def _error(status: int, code: str, message: str) -> web.Response:
    return web.json_response({"error": {"message": message, "type": code, "code": code}}, status=status)


def main() -> None:
    parser = argparse.ArgumentParser(prog="python -m benchmarks.chatserver", description=__doc__)
    parser.add_argument("--port", type=int, default=0, help="0 takes a free one; the address is printed")
    parser.add_argument("--latency-ms", type=float, default=200.0)
    parser.add_argument("--prefill-us", type=float, default=0.0, help="per prompt token that is not cached")
    parser.add_argument("--decode-us", type=float, default=0.0, help="per token written")
    parser.add_argument("--fault", choices=FAULTS)
    parser.add_argument("--answers", type=Path, help="JSON object: model name -> what it says")
    options = parser.parse_args()
    asyncio.run(_serve(options))


def _spoken(answers: dict[str, str]) -> Answer:
    return lambda body: answers.get(body["model"]) or verdict(body)


async def _serve(options: argparse.Namespace) -> None:
    server = ChatServer(
        latency_s=options.latency_ms / 1e3,
        prefill_s=options.prefill_us / 1e6,
        decode_s=options.decode_us / 1e6,
        port=options.port,
        answer=_spoken(json.loads(options.answers.read_text())) if options.answers else verdict,
    )
    server.fault = options.fault
    async with server:
        print(server.url, flush=True)
        await asyncio.Event().wait()


if __name__ == "__main__":
    try:
        main()
    except KeyboardInterrupt:
        sys.exit(0)
