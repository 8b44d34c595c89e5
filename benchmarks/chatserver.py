"""A chat endpoint for tests and measurements, in OpenAI's API: `python -m benchmarks.chatserver [--port P]`.

Each answer takes a fixed time, plus a time per prompt token that is not in the prefix cache and per written token. The
cache works as vLLM's does: prompts are cut into blocks of 16 tokens, and a block counts as cached if it and all before
it were seen. A token is four bytes. Faults can be switched on, for one request or for all.

`GET /stats` returns what was asked, how many requests were in flight on average between the first arrival and the last, and
how much CPU time the server has used; `POST /reset` starts counting again.

It shares its machine with what it measures, so it is written against the transport: a request costs one callback when it
has arrived and one when its answer is due.
"""

import argparse
import asyncio
import json
import sys
from collections import deque
from collections.abc import Callable
from dataclasses import dataclass, replace
from pathlib import Path
from time import perf_counter, process_time
from typing import Any

import httptools
import uvloop

TOKEN_BYTES, BLOCK_TOKENS = 4, 16
BLOCK_BYTES = TOKEN_BYTES * BLOCK_TOKENS
FAULTS = (
    *("rate_limited", "error", "down", "slow", "refused", "quota", "context_overflow", "redirect"),
    *("truncated", "not_json", "wrong_shape", "wrong_schema", "oversized", "empty"),
)
SLOW_S = 30.0
CHAT = "/v1/chat/completions"
Answer = Callable[[dict[str, Any]], str]


def verdict(body: dict[str, Any]) -> str:
    """The answer of a criterion judge; the same for the same question."""
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
        self.only_new_tokens_field = False  # as newer hosted models do
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
        self.connections: set[_ChatConnection] = set()
        self._listening = await asyncio.get_running_loop().create_server(
            lambda: _ChatConnection(self), "127.0.0.1", self.port, backlog=2048, reuse_address=True
        )
        self.port = self._listening.sockets[0].getsockname()[1]
        return self

    async def __aexit__(self, *_: object) -> None:
        self._listening.close()
        for connection in list(self.connections):
            connection.transport.abort()

    def stats(self) -> dict[str, Any]:
        """Counts since the last reset, except `cpu_s`, which is since the start; `mean_in_flight` is from the first arrival to the last."""
        span = self.arrivals[-1] - self.arrivals[0] if len(self.arrivals) > 1 else 0.0
        return {
            "requests": self.requests,
            "peak": self.peak,
            "mean_in_flight": self._area_at_arrival / span if span else None,
            "prompt_tokens": self.prompt_tokens,
            "cached_tokens": self.cached_tokens,
            "completion_tokens": self.completion_tokens,
            "cpu_s": process_time(),
        }

    def count(self, change: int) -> None:
        """Notes that a request has come (+1) or gone (-1)."""
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

    def reply(self, method: str, path: str, key: str, data: bytes) -> "Reply":
        """The reply to a request, with its delay."""
        if (method, path) == ("POST", CHAT):
            return self._chat(json.loads(data), key)
        if (method, path) == ("GET", "/stats"):
            return Reply(_dumped(self.stats()))
        if (method, path) == ("POST", "/reset"):
            self.reset()
            return Reply(b"{}")
        return _error(404, "not_found", f"nothing answers {method} {path}")

    def _chat(self, body: dict[str, Any], key: str) -> "Reply":
        self.bodies.append(body)
        if self.key is not None and key != f"Bearer {self.key}":
            return _error(401, "invalid_api_key", f"Incorrect API key provided: {key or 'none'}")
        if fault := self.faults.popleft() if self.faults else self.fault:
            return self._faulty(fault, body)
        if self.only_new_tokens_field and "max_tokens" in body:
            return _error(400, "unsupported_parameter", "Use 'max_completion_tokens' instead of 'max_tokens'.")
        answered, seconds = self.complete(body)
        return Reply(_dumped(answered), after_s=seconds)

    def complete(self, body: dict[str, Any]) -> tuple[dict[str, Any], float]:
        """(the answer to a chat request, the seconds it takes)."""
        prompt, cached = self.fill_cache(body)
        text = self.answer(body)
        limit = body.get("max_tokens") or body.get("max_completion_tokens") or 1_000_000
        encoded = text.encode("utf-8", "surrogatepass")
        written, reason = -(-len(encoded) // TOKEN_BYTES), "stop"
        if written > limit:
            written, reason = limit, "length"
            text = encoded[: limit * TOKEN_BYTES].decode("utf-8", "ignore")
        self.completion_tokens += written
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
        answered = {
            "id": "x",
            "object": "chat.completion",
            "model": body.get("model"),
            "choices": [choice],
            "usage": usage,
        }
        return answered, self.latency_s + (prompt - cached) * self.prefill_s + written * self.decode_s

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

    def _faulty(self, fault: str, body: dict[str, Any]) -> "Reply":
        if fault == "down":
            return Reply(b"", broken_off=True)
        if fault in _ERRORS:
            more = (("Retry-After", self.retry_after),) if fault == "rate_limited" else ()
            return replace(_error(*_ERRORS[fault]), headers=more)
        if fault == "redirect":
            return Reply(b"", 307, (("Location", "http://127.0.0.1:1/v1/chat/completions"),))
        if fault in _BODIES:
            return Reply(_BODIES[fault])
        if fault == "oversized":
            return Reply(b" " * 9_000_000)
        answered, seconds = self.complete(body)
        choice = answered["choices"][0]
        if fault == "truncated":
            choice["finish_reason"], choice["message"]["content"] = "length", choice["message"]["content"][:10]
        elif fault == "wrong_schema":
            choice["message"]["content"] = '{"colour": "blue"}'
        return Reply(_dumped(answered), after_s=seconds + (SLOW_S if fault == "slow" else 0.0))


@dataclass(frozen=True)
class Reply:
    """A reply; with `broken_off` the connection is closed instead."""

    body: bytes
    status: int = 200
    headers: tuple[tuple[str, str], ...] = ()
    after_s: float = 0.0
    broken_off: bool = False

    def encoded(self) -> bytes:
        more = "".join(f"{name}: {value}\r\n" for name, value in self.headers)
        head = f"HTTP/1.1 {self.status} -\r\nContent-Type: application/json\r\n{more}Content-Length: {len(self.body)}\r\n\r\n"
        return head.encode() + self.body


class _ChatConnection(asyncio.Protocol):
    """Handles one request after the other; chat requests count as in flight from their arrival until they are answered or given up."""

    transport: Any  # a TCP transport of asyncio or of uvloop, which share no class

    def __init__(self, server: ChatServer) -> None:
        self.server = server
        self.parser = httptools.HttpRequestParser(self)
        self.path, self.key, self.body = "", "", b""
        self.due: asyncio.TimerHandle | None = None
        self.counted = False

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        self.transport = transport
        self.server.connections.add(self)

    def connection_lost(self, error: Exception | None) -> None:
        self.server.connections.discard(self)
        if self.due is not None:
            self.due.cancel()
        self._leave()

    def data_received(self, data: bytes) -> None:
        try:
            self.parser.feed_data(data)
        except httptools.HttpParserError:
            self.transport.abort()

    def on_url(self, url: bytes) -> None:
        self.path, self.key, self.body = url.decode("latin-1"), "", b""

    def on_header(self, name: bytes, value: bytes) -> None:
        if name.lower() == b"authorization":
            self.key = value.decode("latin-1")

    def on_body(self, part: bytes) -> None:
        self.body += part

    def on_message_complete(self) -> None:
        if self.path == CHAT:
            self.server.count(+1)
            self.counted = True
        reply = self.server.reply(self.parser.get_method().decode(), self.path, self.key, self.body)
        if reply.after_s > 0:
            self.due = asyncio.get_running_loop().call_later(reply.after_s, self._send, reply)
        else:
            self._send(reply)

    def _send(self, reply: Reply) -> None:
        self._leave()
        if reply.broken_off:
            self.transport.abort()
        else:
            self.transport.write(reply.encoded())

    def _leave(self) -> None:
        if self.counted:
            self.server.count(-1)
        self.counted = False


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
_BODIES = {"not_json": b"<html>It works!</html>", "wrong_shape": b'{"result": "fine"}', "empty": b""}


def _prompt(body: dict[str, Any]) -> bytes:
    return "".join(f"<{m['role']}>{m['content']}" for m in body["messages"]).encode("utf-8", "surrogatepass")


def _dumped(answer: Any) -> bytes:
    return json.dumps(answer).encode()


def _error(status: int, code: str, message: str) -> Reply:
    return Reply(_dumped({"error": {"message": message, "type": code, "code": code}}), status)


def main() -> None:
    parser = argparse.ArgumentParser(prog="python -m benchmarks.chatserver", description=__doc__)
    parser.add_argument("--port", type=int, default=0, help="0 takes a free one; the address is printed")
    parser.add_argument("--latency-ms", type=float, default=200.0)
    parser.add_argument("--prefill-us", type=float, default=0.0, help="per prompt token that is not cached")
    parser.add_argument("--decode-us", type=float, default=0.0, help="per token written")
    parser.add_argument("--fault", choices=FAULTS)
    parser.add_argument("--answers", type=Path, help="JSON object: model name -> what it says")
    options = parser.parse_args()
    uvloop.run(_serve(options))


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
