"""Answers requests on a socket. One connection is one request: one line of JSON in, several lines out."""

import json
import os
import queue
import socket
import threading
import time
from collections import deque
from collections.abc import Callable, Iterator
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Literal, Protocol

from pydantic import Field, ValidationError

from trainer.contracts import Message
from trainer.contracts.base import Record

from .pieces import Pieces

AT_ONCE = 4
"""The number of responses that take turns."""
MOST_WAITING = 12
_SEND_S = 15.0
_FIRST_LINE_S = 10.0
_LONGEST_LINE = 4_000_000
_NAP_S = 0.2


class Ask(Record):
    """A request. `seed` decides what is drawn; with temperature 0 the most likely token is always taken."""

    messages: tuple[Message, ...] = Field(min_length=1, max_length=200)
    max_new_tokens: int = Field(default=256, ge=1, le=8192)
    temperature: float = Field(default=0.0, ge=0, le=10)
    top_p: float = Field(default=1.0, gt=0, le=1)
    seed: int = Field(default=0, ge=0, lt=2**31)
    stop: tuple[str, ...] = Field(default=(), max_length=8)


class Score(Record):
    """A request to a reward model for the score of each answer to the prompt."""

    op: Literal["score"]
    messages: tuple[Message, ...] = Field(min_length=1, max_length=200)
    answers: tuple[str, ...] = Field(min_length=1, max_length=64)


Request = Ask | Score


class Failed(Exception):
    """A request that cannot be answered; programs read `code`."""

    def __init__(self, code: Literal["invalid", "too_long", "busy", "memory", "failed"], message: str) -> None:
        super().__init__(message)
        self.code, self.message = code, message


class Caller:
    """The client's end of a connection."""

    def __init__(self, connection: socket.socket) -> None:
        self._connection = connection
        self.gone = False

    def tell(self, event: str, **facts: Any) -> None:
        if self.gone:
            return
        try:
            self._connection.sendall(json.dumps({"event": event, **facts}).encode() + b"\n")
        except OSError:  # closed, or too slow to read
            self.gone = True

    def fail(self, problem: Failed) -> None:
        self.tell("error", code=problem.code, message=problem.message)
        self.close()

    def close(self) -> None:
        self.gone = True
        with suppress(OSError):
            self._connection.close()


@dataclass
class AnswerInProgress:
    """A request under way: each advance of `steps` sends the caller one more token."""

    caller: Caller
    steps: Iterator[None]


class Server:
    """Accepts in threads, generates in the thread that calls `serve`. Ends when no request has come for `idle_s` seconds."""

    def __init__(self, path: Path, idle_s: float) -> None:
        self._idle_s = idle_s
        self._ended = threading.Event()
        self._came: queue.Queue[tuple[Request, Caller]] = queue.Queue()
        self._waiting: deque[tuple[Request, Caller]] = deque()
        self._active: deque[AnswerInProgress] = deque()
        self._loading: str | None = "loading"
        self._socket = _listen(path)
        self._path = path
        threading.Thread(target=self._accept, daemon=True).start()

    def serve(self, load: Callable[[], "Answers"]) -> None:
        """Load the model and answer until it is idle. If the model cannot be loaded, all callers get the reason."""
        try:
            model = load()
        except Failed as problem:
            self._refuse_all(problem)
            raise
        finally:
            self._loading = None
        last = time.monotonic()
        while not self._ended.is_set():
            self._take(model)
            if self._active:
                self._advance()
                last = time.monotonic()
            elif time.monotonic() - last > self._idle_s:
                break
        self.close()

    def end(self) -> None:
        """End the server; any thread may call this."""
        self._ended.set()

    def close(self) -> None:
        with suppress(OSError):
            self._path.unlink()
            self._socket.close()

    @property
    def idle(self) -> bool:
        return not (self._active or self._waiting or self._loading) and self._came.empty()

    def _take(self, model: "Answers") -> None:
        """Move new requests to the queue, and from the queue to free places. Waits a moment if there is nothing else to do."""
        with suppress(queue.Empty):
            self._waiting.append(self._came.get(block=not self._active, timeout=_NAP_S))
        while len(self._active) < AT_ONCE and self._waiting:
            ask, caller = self._waiting.popleft()
            if not caller.gone:
                self._active.append(AnswerInProgress(caller, model.answer(ask, caller)))

    def _advance(self) -> None:
        """Send one token of the next answer. The answer stays in `_active` meanwhile, so that `idle` is right."""
        answering = self._active[0]
        goes_on = self._step(answering) and not answering.caller.gone
        self._active.popleft()
        if goes_on:
            self._active.append(answering)

    def _step(self, answering: AnswerInProgress) -> bool:
        """Advance an answer; returns whether more is to come."""
        try:
            next(answering.steps)
        except StopIteration:
            answering.caller.close()
        except Failed as problem:
            answering.caller.fail(problem)
        except (MemoryError, RuntimeError) as error:
            code: Literal["memory", "failed"] = "memory" if _is_shortage(error) else "failed"
            words = "Out of memory: ask for fewer tokens, or use a shorter prompt." if code == "memory" else str(error)
            answering.caller.fail(Failed(code, words[:500]))
        else:
            return True
        return False

    def _accept(self) -> None:
        while not self._ended.is_set():
            try:
                connection, _ = self._socket.accept()
            except OSError:
                return
            connection.settimeout(_SEND_S)
            threading.Thread(target=self._receive, args=(connection,), daemon=True).start()

    def _receive(self, connection: socket.socket) -> None:
        caller = Caller(connection)
        try:
            line = _first_line(connection)
            if line.get("op") == "yield":
                self._yield_place(caller)
                return
            ask: Request = (Score if line.get("op") == "score" else Ask).model_validate(line)
        except (OSError, ValueError) as error:
            reason = "; ".join(_said(error)) if isinstance(error, ValidationError) else str(error)
            caller.fail(Failed("invalid", reason))
            return
        if len(self._waiting) + self._came.qsize() >= MOST_WAITING:
            caller.fail(Failed("busy", "The model is busy: too many people are asking it. Try again in a moment."))
            return
        if self._loading:
            caller.tell("loading")
        elif self._active and len(self._active) >= AT_ONCE:
            caller.tell("waiting")
        self._came.put((ask, caller))

    def _yield_place(self, caller: Caller) -> None:
        """End, if no answer is under way, because another model needs the memory."""
        leaving = self.idle
        caller.tell("leaving" if leaving else "busy")
        caller.close()
        if leaving:
            self.end()

    def _refuse_all(self, problem: Failed) -> None:
        time.sleep(_NAP_S)  # a caller that has just connected is still being read
        while True:
            try:
                _, caller = self._came.get_nowait()
            except queue.Empty:
                break
            caller.fail(problem)
        self.close()


class Answers(Protocol):
    """A loaded model of any kind."""

    def answer(self, ask: Request, caller: Caller) -> Iterator[None]: ...


class ServedScorer:
    """A loaded reward model."""

    def __init__(self, model: Any) -> None:
        self._model = model

    def answer(self, ask: Request, caller: Caller) -> Iterator[None]:
        """Sends `done` with `scores` and `problems`, one of each per answer; one of the two is null or empty. Raises Failed."""
        if not isinstance(ask, Score):
            raise Failed("invalid", "This model scores texts and cannot write any.")
        found = self._model.scores(ask.messages, ask.answers)
        scores = [None if isinstance(each, str) else each for each in found]
        caller.tell("done", scores=scores, problems=[each if isinstance(each, str) else "" for each in found])
        yield


class ServedModel:
    """A loaded model that answers in steps."""

    def __init__(self, sampler: Any, tokenizer: Any, longest: int) -> None:
        self._sampler, self._tokenizer, self._longest = sampler, tokenizer, longest

    def answer(self, ask: Request, caller: Caller) -> Iterator[None]:
        """Sends the caller the start, each token and the end. Raises Failed."""
        if not isinstance(ask, Ask):
            raise Failed("invalid", "This model writes text and cannot score any.")
        from trainer.inference.chat import encode_prompt
        from trainer.inference.sampling import SampleRequest

        prompt = encode_prompt(self._tokenizer, ask.messages)
        if len(prompt) + ask.max_new_tokens > self._longest:
            raise Failed(
                "too_long",
                f"The prompt has {len(prompt):,} tokens and {ask.max_new_tokens:,} more were asked for; the model sees "
                f"{self._longest:,}.",
            )
        caller.tell("start", prompt_tokens=len(prompt))
        started, pieces = time.monotonic(), Pieces(self._tokenizer, ask.stop)
        request = SampleRequest(prompt, ask.max_new_tokens, ask.temperature, ask.top_p, ask.stop, ask.seed)
        for tokens, result in self._sampler.stream(request):
            piece = pieces.last(result.text) if result else pieces.next(tokens)
            caller.tell("token", text=piece, token=tokens[-1])
            if result:
                took = round(time.monotonic() - started, 3)
                ended = {"finish_reason": result.finish_reason, "tokens": list(result.tokens), "seconds": took}
                caller.tell("done", text=result.text, completion_tokens=len(tokens), prompt_tokens=len(prompt), **ended)
            yield


def _listen(path: Path) -> socket.socket:
    """Listen at `path`. The process that starts this one holds a lock, so a socket that exists already is left from a dead process."""
    path.unlink(missing_ok=True)
    found = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
    partial = path.with_suffix(".new")
    partial.unlink(missing_ok=True)
    found.bind(str(partial))
    partial.chmod(0o600)
    found.listen(64)
    os.replace(partial, path)
    return found


def _first_line(connection: socket.socket) -> dict[str, Any]:
    connection.settimeout(_FIRST_LINE_S)
    read = b""
    while not read.endswith(b"\n"):
        piece = connection.recv(1 << 16)
        if not piece:
            raise ValueError("the request ended before its line did")
        read += piece
        if len(read) > _LONGEST_LINE:
            raise ValueError("the request is too long")
    connection.settimeout(_SEND_S)
    found = json.loads(read)
    if not isinstance(found, dict):
        raise ValueError("a request is an object")
    return found


def _said(error: ValidationError) -> list[str]:
    return [f"{'.'.join(map(str, item['loc']))}: {item['msg']}" for item in error.errors(include_url=False)[:5]]


def _is_shortage(error: BaseException) -> bool:
    from trainer.config.memory import is_shortage

    return isinstance(error, MemoryError) or is_shortage(str(error))
