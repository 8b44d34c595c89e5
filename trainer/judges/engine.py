"""Runs calls with bounded concurrency, in an order that shares prefixes, and hands the outcomes over in batches."""

import asyncio
from collections.abc import Callable, Iterable, Iterator
from concurrent.futures import Executor
from contextlib import suppress
from dataclasses import dataclass, replace
from decimal import Decimal
from itertools import islice
from typing import Any, Literal, TypeVar

from trainer.contracts.plurals import with_noun

from .answers import Reading
from .calls import Call, again
from .chat import Chat, ChatReply, EndpointProblem, Prices, cost
from .templates import scrub

T = TypeVar("T")
State = Literal["done", "missing", "failed"]
WINDOW = 400  # calls fetched and ordered at a time
FLUSH_S = 0.2  # an outcome may wait this long before it is handed over
GRACE_S = 30.0  # calls in flight may still take this long after the run is told to stop
FEWEST_FAILURES = 20  # failures in a row, and at least two for each place: then the endpoint counts as gone


@dataclass(frozen=True)
class Outcome:
    """The outcome of a call. `done`: there is a `parsed` answer; if `problem` says so, it is only a part. `missing`: no answer of the judge
    could be used, however often it was asked; `raw` is its last answer. `failed`: the endpoint gave no answer, and a later run asks
    again. Tokens and attempts of `reply` are sums over all times that the judge was asked."""

    call: Call
    state: State
    parsed: dict[str, Any] | None
    raw: str
    problem: str
    reply: ChatReply | None
    cost: Decimal | None
    trouble: EndpointProblem | None = None

    @property
    def subject(self) -> dict[str, Any]:
        return self.call.subject


@dataclass
class Counts:
    """The number of calls that ended in each state. `halted` says why the run ended before its last call; "" if it did not."""

    done: int = 0
    missing: int = 0
    failed: int = 0
    halted: str = ""


async def run(
    calls: Iterable[Call],
    client: Chat,
    parse: Callable[[Call, ChatReply], Reading],
    *,
    on_outcome: Callable[[list[Outcome]], None],
    stop: Callable[[], bool] = lambda: False,
    concurrency: int,
    retries: int = 2,
    prices: Prices | None = None,
    executor: Executor | None = None,
) -> Counts:
    """Calls everything once and returns the counts.

    `calls` is read in windows. Each window is sorted by prompt, so that calls with common prefixes run together. `calls`, `on_outcome` and
    `stop` run in `executor`, one after the other, never in the event loop: they may use the database. Their errors end the run. An
    outcome waits at most FLUSH_S before it is handed over, so a process that dies loses no more than that.

    The run halts if `stop` says so, if the budget is used up, or if the endpoint has failed many times in a row; `halted` then has the
    reason. Outcomes of calls in flight are still handed over.
    """
    try:
        return await _Run(client, parse, on_outcome, stop, concurrency, retries, prices, executor).finish(iter(calls))
    except BaseExceptionGroup as group:  # one task failed, and the others were cancelled with it
        raise group.exceptions[0] from group


class _Run:
    def __init__(
        self,
        client: Chat,
        parse: Callable[[Call, ChatReply], Reading],
        on_outcome: Callable[[list[Outcome]], None],
        stop: Callable[[], bool],
        concurrency: int,
        retries: int,
        prices: Prices | None,
        executor: Executor | None,
    ) -> None:
        self.client, self.parse, self.on_outcome, self.stop = client, parse, on_outcome, stop
        self.retries, self.prices, self.executor = retries, prices, executor
        # a few more than the client lets through, so that one is ready when a place becomes free
        self.workers = concurrency + concurrency // 8 + 1
        self.patience = max(FEWEST_FAILURES, 2 * concurrency)
        self.queue: asyncio.Queue[Call | None] = asyncio.Queue()
        self.reserve, self.low = 2 * self.workers, asyncio.Event()
        self.outcomes: list[Outcome] = []
        self.counts = Counts()
        self.failures = 0
        self.halted, self.ended = asyncio.Event(), asyncio.Event()
        self.side = asyncio.Lock()

    async def finish(self, calls: Iterator[Call]) -> Counts:
        async with asyncio.TaskGroup() as group:
            feeding = group.create_task(self.feed(calls))
            working = [group.create_task(self.work()) for _ in range(self.workers)]
            group.create_task(self.flush_and_watch())
            ending = group.create_task(self.cut_short([feeding, *working]))
            await asyncio.wait([feeding, *working])
            self.ended.set()
            ending.cancel()
        return self.counts

    async def beside(self, function: Callable[..., T], *arguments: Any) -> T:
        async with self.side:
            return await asyncio.get_running_loop().run_in_executor(self.executor, function, *arguments)

    async def feed(self, calls: Iterator[Call]) -> None:
        while not self.halted.is_set():
            window = await self.beside(lambda: sorted(islice(calls, WINDOW), key=_prompt))
            if not window:
                break
            # all at once, and more when few are left: waking the feeder for each call costs as much as making the call ready
            self.low.clear()
            for call in window:
                self.queue.put_nowait(call)
            if self.queue.qsize() > self.reserve:
                await self.low.wait()
        for _ in range(self.workers):
            self.queue.put_nowait(None)

    async def work(self) -> None:
        while (call := await self.queue.get()) is not None:
            if self.queue.qsize() <= self.reserve:
                self.low.set()
            if self.halted.is_set():
                continue  # the queue is emptied, so that the task that fills it can end
            outcome = await self.ask(call)
            if outcome is not None:
                self.outcomes.append(outcome)
                setattr(self.counts, outcome.state, getattr(self.counts, outcome.state) + 1)

    async def ask(self, call: Call) -> Outcome | None:
        """The outcome of the call; None if the budget did not allow it."""
        request, total, best, raw = call.request, None, Reading(None), ""
        for attempt in range(self.retries + 1):
            try:
                reply = await self.client.chat(request)
            except EndpointProblem as found:
                if found.code == "budget":
                    self.halt(found.message)
                    return None if total is None else self.outcome(call, best, raw, total)
                return self.failed(call, found) if total is None else self.outcome(call, best, raw, total)
            self.failures = 0
            total = reply if total is None else _sum(total, reply)
            reading = self.parse(call, reply)
            if reading.parsed is not None or best.parsed is None:
                best, raw = reading, scrub(reply.text)
            if not reading.problem:
                break
            if attempt < self.retries:
                request = again(call.request, reply.text, reading.problem)
        return None if total is None else self.outcome(call, best, raw, total)

    def outcome(self, call: Call, reading: Reading, raw: str, reply: ChatReply) -> Outcome:
        state: State = "missing" if reading.parsed is None else "done"
        return Outcome(call, state, reading.parsed, raw, scrub(reading.problem), reply, cost(reply, self.prices))

    def failed(self, call: Call, found: EndpointProblem) -> Outcome:
        if found.code not in ("context_overflow", "bad_response"):  # those are about this call, not about the endpoint
            self.failures += 1
            if self.failures >= self.patience:
                self.halt(f"{with_noun(self.failures, 'calls')} in a row failed, the last with: {found.message}")
        return Outcome(call, "failed", None, "", scrub(f"{found.code}: {found.message}"), None, None, found)

    def halt(self, reason: str) -> None:
        if not self.halted.is_set():
            self.counts.halted = reason
            self.halted.set()

    async def flush_and_watch(self) -> None:
        while not self.ended.is_set():
            with suppress(TimeoutError):
                await asyncio.wait_for(self.ended.wait(), FLUSH_S)
            await self.flush()
            if not (self.halted.is_set() or self.ended.is_set()) and await self.beside(self.stop):
                self.halt("stopped")
        await self.flush()  # outcomes that came while the last batch was handed over

    async def flush(self) -> None:
        if self.outcomes:
            batch, self.outcomes = self.outcomes, []
            await self.beside(self.on_outcome, batch)

    async def cut_short(self, tasks: list[asyncio.Task[None]]) -> None:
        await self.halted.wait()
        await asyncio.sleep(GRACE_S)
        for task in tasks:
            task.cancel()


def _prompt(call: Call) -> str:
    return call.record  # begins with the messages


def _sum(before: ChatReply, reply: ChatReply) -> ChatReply:
    def both(a: int | None, b: int | None) -> int | None:
        return None if a is None or b is None else a + b

    return replace(
        reply,
        prompt_tokens=both(before.prompt_tokens, reply.prompt_tokens),
        cached_tokens=both(before.cached_tokens, reply.cached_tokens),
        completion_tokens=both(before.completion_tokens, reply.completion_tokens),
        attempts=before.attempts + reply.attempts,
    )
