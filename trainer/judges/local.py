"""A model on this machine answers in a process of its own, so that the process that asks needs no torch.

The process (`python -m trainer judge-local --in - --out -`) loads the model once, takes calls as JSON Lines, and answers waiting calls
together in one pass. It ends when its input ends, so it never lives longer than the process that asks.
"""

import asyncio
import hashlib
import json
import random
from collections import deque
from collections.abc import Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from itertools import count
from time import perf_counter
from types import TracebackType
from typing import Any, Self

from .base import BaseSpec
from .budget import Budget, within
from .chat import ChatReply, ChatRequest, EndpointProblem, Prices

ONE_WORD = "\n\nDo not explain and write no JSON. Is it true? Reply with one word, Yes or No."
"""The text after a question for JSON, if the answer is read from one token."""

LOAD_S = 600.0  # a large model from a slow disk
ANSWER_S = 1800.0  # a process that answers nothing for this long counts as dead
AT_ONCE_YES_NO, AT_ONCE_TEXT = 64, 16
_LONGEST_LINE = 16_000_000
_LAST_WORDS = 5  # lines of stderr that an error quotes


def wording(spec: BaseSpec) -> str:
    """A name for the wording of a question. A threshold belongs to one wording."""
    return hashlib.sha256(f"{spec.system}\n{spec.prompt}\n{ONE_WORD}".encode()).hexdigest()[:16]


@dataclass(frozen=True)
class LocalTarget:
    """`command` starts the process, in `folder`; `model` is a directory or hub id, `adapters` are laid on it. `wording` names the templates.

    The process gets `environment`, or that of this process. `yes_no`: every request asks whether a statement is true, and gets a
    probability instead of a text.
    """

    command: Sequence[str]
    folder: str
    model: str
    yes_no: bool
    wording: str = ""
    prices: Prices | None = None
    adapters: Sequence[str] = ()
    environment: Mapping[str, str] | None = None

    @property
    def concurrency(self) -> int:
        return AT_ONCE_YES_NO if self.yes_no else AT_ONCE_TEXT


class LocalClient:
    """`async with LocalClient(target, budget) as client: reply = await client.chat(request)`, from any number of tasks."""

    def __init__(self, target: LocalTarget, budget: Budget | None = None) -> None:
        self.target, self.budget = target, budget
        self._numbers = count()
        self._waiting: dict[str, asyncio.Future[dict[str, Any]]] = {}
        self._said: deque[str] = deque(maxlen=_LAST_WORDS)
        self._gone: EndpointProblem | None = None
        self._ready = asyncio.Event()

    async def __aenter__(self) -> Self:
        adapters = [part for folder in self.target.adapters for part in ("--adapter", folder)]
        command = [*self.target.command, "--model", self.target.model, *adapters, "--in", "-", "--out", "-"]
        pipe = asyncio.subprocess.PIPE
        try:
            self._process = await asyncio.create_subprocess_exec(
                *command,
                cwd=self.target.folder,
                env=self.target.environment,
                stdin=pipe,
                stdout=pipe,
                stderr=pipe,
                limit=_LONGEST_LINE,
            )
        except OSError as error:
            raise EndpointProblem("down", f"the process of the local model could not be started: {error}") from error
        self._reading = asyncio.gather(self._read_verdicts(), self._read_errors())
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        with suppress(ProcessLookupError):
            self._process.kill()
        await self._reading
        await self._process.wait()

    async def chat(self, request: ChatRequest) -> ChatReply:
        """The reply. For a yes-no question its `text` is the JSON of a judge of criteria. Raises EndpointProblem."""
        return await within(self.budget, request, self.target.prices, self._ask)

    async def _ask(self, request: ChatRequest) -> ChatReply:
        started = perf_counter()
        key = str(next(self._numbers))
        answer = self._waiting[key] = asyncio.get_running_loop().create_future()
        try:
            await self._write(json.dumps(question(key, request, self.target.yes_no, self.target.wording)))
            verdict = await asyncio.wait_for(answer, ANSWER_S if self._ready.is_set() else LOAD_S + ANSWER_S)
        except TimeoutError as error:
            message = f"the process of the local model has not answered for {ANSWER_S:g} s"
            raise EndpointProblem("timeout", message) from error
        finally:
            self._waiting.pop(key, None)
        return reply_of(verdict, perf_counter() - started)

    async def _write(self, line: str) -> None:
        if self._gone:
            raise self._gone
        assert self._process.stdin is not None  # noqa: S101  # asked for as a pipe
        try:
            self._process.stdin.write(line.encode() + b"\n")
            await self._process.stdin.drain()
        except (ConnectionError, BrokenPipeError):
            await self._reading  # the output ends with the process; then the reason is known
            raise self._gone or EndpointProblem("down", "the process of the local model takes no more calls") from None

    async def _read_verdicts(self) -> None:
        assert self._process.stdout is not None  # noqa: S101
        while line := await self._process.stdout.readline():
            found = json.loads(line)
            self._ready.set()
            waiting = self._waiting.get(found.get("key", ""))  # the first line is about the process and has no key
            if waiting is not None and not waiting.done():
                waiting.set_result(found)
        status = await self._process.wait()
        await asyncio.sleep(0)  # the last words of the process are read before they are reported
        told = " / ".join(self._said) or "it said nothing"
        how = f"was killed by signal {-status}" if status < 0 else f"ended with status {status}"
        self._gone = EndpointProblem("down", f"the process of the local model {how}: {told}")
        for waiting in self._waiting.values():
            if not waiting.done():
                waiting.set_exception(self._gone)

    async def _read_errors(self) -> None:
        assert self._process.stderr is not None  # noqa: S101
        while line := await self._process.stderr.readline():
            text = line.decode("utf-8", "replace").strip()
            if text and not text.startswith('{"answered"'):
                self._said.append(text[-300:])


def question(key: str, request: ChatRequest, yes_no: bool, wording: str) -> dict[str, Any]:
    """The request in the form that `trainer.logit_judge.calls.LocalCall` reads. LocalTarget explains `yes_no` and `wording`."""
    sampling = request.sampling
    seed = sampling.seed if request.seed is None else request.seed
    call: dict[str, Any] = {"key": key, "messages": request.messages, "reply": "yes_no", "wording": wording}
    if not yes_no:
        drawn = random.getrandbits(31) if seed is None else seed  # noqa: S311  # samples must differ
        call |= {"reply": "text", "temperature": sampling.temperature, "top_p": sampling.top_p}
        call |= {"max_tokens": sampling.max_tokens, "seed": drawn}
    return call


def reply_of(verdict: dict[str, Any], latency_s: float) -> ChatReply:
    """The answer of the model as the reply of a chat endpoint. Raises EndpointProblem for a call that the model cannot take."""
    if verdict["state"] == "failed":
        raise EndpointProblem(verdict["problem"], verdict["message"])
    counts = (verdict["prompt_tokens"], verdict.get("cached_tokens"), verdict.get("completion_tokens", 0))
    if "text" in verdict:
        return ChatReply(verdict["text"], verdict["finish_reason"], *counts, latency_s)
    threshold = "above the threshold learned for this model" if verdict["calibrated"] else "the likelier answer"
    if verdict["calibrated"] and not verdict["met"]:
        threshold = "below the threshold learned for this model"
    said = f"P(yes) = {verdict['probability']:.3f} against no: {threshold}. Yes or no: {verdict['mass']:.0%} of all next words."
    return ChatReply(json.dumps({"explanation": said, "met": verdict["met"]}), "stop", *counts, latency_s)
