"""A judge that this process asks itself, over an endpoint or in a child process with local weights."""

import asyncio
from collections.abc import Callable, Iterable, Mapping, Sequence
from contextlib import AsyncExitStack, suppress
from dataclasses import replace
from typing import Protocol

from trainer.judges.answers import Reading
from trainer.judges.budget import Budget
from trainer.judges.calls import Call, expand, read
from trainer.judges.chat import Chat, ChatReply, EndpointProblem, Target
from trainer.judges.client import ChatClient
from trainer.judges.engine import Counts, Outcome, run
from trainer.judges.inputs import InputProblem, JudgeInput
from trainer.judges.local import LocalClient, LocalTarget
from trainer.judges.spec import BaseSpec

from .parts import RewardAnswer

ABOUT_THE_CALL = ("context_overflow", "bad_response")
"""Problems that remain if the judge is asked again: they are about the question, not about the endpoint."""


class VerdictsAway(Exception):
    """The verdict store does not answer; the message says why."""


class Store(Protocol):
    """A store of verdicts by the key of their question. `get` and `put` are called in threads."""

    def get(self, keys: Sequence[str]) -> Mapping[str, RewardAnswer]:
        """Raises VerdictsAway."""
        ...

    def put(self, outcomes: Iterable[Outcome]) -> None:
        """Raises VerdictsAway; the store then sends them with the next ones."""
        ...

    def limit(self, budget: Budget) -> None:
        """Sets the limit of the budget, and what is used so far, if the store knows them."""
        ...


class Memory:
    """A store that keeps the newest answers as long as the process lives."""

    def __init__(self, most: int = 50_000) -> None:
        self._known: dict[str, RewardAnswer] = {}
        self._most = most

    def get(self, keys: Sequence[str]) -> Mapping[str, RewardAnswer]:
        return {key: self._known[key] for key in keys if key in self._known}

    def put(self, outcomes: Iterable[Outcome]) -> None:
        for outcome in outcomes:
            if outcome.state != "failed":
                self._known[outcome.call.key] = answer_of(outcome, called=False)
        while len(self._known) > self._most:
            del self._known[next(iter(self._known))]

    def limit(self, budget: Budget) -> None:
        pass


class EngineJudge:
    """A judge that asks through the engine of judges, with its limits, retries and budget. `key` is the version's digest.

    The connections, or the child process, are opened with the first question and kept until `close`.
    """

    def __init__(
        self,
        spec: BaseSpec,
        key: str,
        target: Target | LocalTarget,
        budget: Budget | None = None,
        store: Store | None = None,
    ) -> None:
        self.spec, self.key = spec, key
        self._target, self._budget = target, budget
        self._store: Store = store or Memory()
        self._held = AsyncExitStack()
        self._chat: Chat | None = None
        self._opening = asyncio.Lock()

    async def ask(self, inputs: Sequence[JudgeInput]) -> list[list[RewardAnswer]]:
        expanded = [self._calls(storable(given)) for given in inputs]
        calls = {call.key: call for found in expanded if not isinstance(found, str) for call in found}
        try:
            known = dict(await asyncio.to_thread(self._store.get, list(calls)))
        except VerdictsAway as problem:
            away = {key: RewardAnswer({}, None, problem=str(problem), away=True) for key in calls}
            return [answers_to(found, {}, away, set()) for found in expanded]
        if self._budget:
            self._store.limit(self._budget)
        fresh = await self._called([call for key, call in calls.items() if key not in known])
        paid: set[str] = set()
        return [answers_to(found, known, fresh, paid) for found in expanded]

    async def close(self) -> None:
        await self._held.aclose()
        self._chat = None

    def _calls(self, given: JudgeInput) -> list[Call] | str:
        """The questions of the input, or why it has none."""
        try:
            return expand(self.spec, self.key, given)
        except InputProblem as problem:
            return str(problem)

    async def _called(self, calls: Sequence[Call]) -> dict[str, RewardAnswer]:
        if not calls:
            return {}
        found: dict[str, RewardAnswer] = {}

        def keep(outcomes: list[Outcome]) -> None:
            found.update((outcome.call.key, answer_of(outcome, called=True)) for outcome in outcomes)
            with suppress(VerdictsAway):  # an answer is one all the same
                self._store.put(outcomes)

        try:
            counts = await self._run(calls, keep)
        except EndpointProblem as problem:  # the child process, or the address, before any call
            counts = Counts(halted=problem.message)
            await self._give_up()
        if isinstance(self._target, LocalTarget) and any(answer.away for answer in found.values()):
            await self._give_up()
        for call in calls:
            if call.key not in found:
                found[call.key] = RewardAnswer(call.subject, None, problem=counts.halted or "not asked", away=True)
        return found

    async def _run(self, calls: Sequence[Call], keep: Callable[[list[Outcome]], None]) -> Counts:
        def parsed(call: Call, reply: ChatReply) -> Reading:
            return read(self.spec, call.subject, reply.text, complete=reply.finish_reason != "length")

        target = self._target
        return await run(
            calls,
            await self._client(),
            parsed,
            on_outcome=keep,
            concurrency=target.concurrency,
            retries=self.spec.retries,
            prices=target.prices,
        )

    async def _client(self) -> Chat:
        async with self._opening:
            if self._chat is None:
                if isinstance(self._target, LocalTarget):
                    self._chat = await self._held.enter_async_context(LocalClient(self._target, self._budget))
                else:
                    self._chat = await self._held.enter_async_context(ChatClient(self._target, self._budget))
        return self._chat

    async def _give_up(self) -> None:
        """Ends a child process that no longer answers. The next question starts a new one."""
        await self._held.aclose()
        self._held, self._chat = AsyncExitStack(), None


def storable(given: JudgeInput) -> JudgeInput:
    """The text without NUL, which models sample now and then and which the database cannot hold: its symbol replaces it."""
    written = (*given.responses.values(), *given.model_reasons, *given.generated)
    if not any("\0" in text for text in written):
        return given
    return replace(
        given,
        responses={name: text.replace("\0", "␀") for name, text in given.responses.items()},
        model_reasons=tuple(text.replace("\0", "␀") for text in given.model_reasons),
        generated=tuple(text.replace("\0", "␀") for text in given.generated),
    )


def answers_to(
    calls: Sequence[Call] | str, known: Mapping[str, RewardAnswer], fresh: Mapping[str, RewardAnswer], paid: set[str]
) -> list[RewardAnswer]:
    """The answers to the questions of one input. If several inputs ask a question, the first pays for it: `paid` has such questions."""
    if isinstance(calls, str):
        return [RewardAnswer({}, None, problem=calls)]
    found = []
    for call in calls:
        answer = replace(known[call.key] if call.key in known else fresh[call.key], subject=call.subject)
        found.append(replace(answer, called=False, tokens=0, cost=None, latency_s=0.0) if call.key in paid else answer)
        paid.add(call.key)
    return found


def answer_of(outcome: Outcome, *, called: bool) -> RewardAnswer:
    """The answer of an outcome. A call that failed because of the endpoint is away: it may be asked again."""
    reply, trouble = outcome.reply, outcome.trouble
    away = outcome.state == "failed" and (trouble is None or trouble.code not in ABOUT_THE_CALL)
    tokens = (reply.prompt_tokens or 0) + (reply.completion_tokens or 0) if reply and called else 0
    return RewardAnswer(
        outcome.subject,
        outcome.parsed,
        outcome.raw,
        outcome.problem,
        called,
        tokens,
        float(outcome.cost) if called and outcome.cost is not None else None,
        reply.latency_s if reply and called else 0.0,
        away,
    )
