"""A judge that the server of the run asks, with the key and the limits of its endpoint, and never twice."""

import asyncio
import hashlib
from collections.abc import AsyncIterator, Coroutine, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from time import monotonic

import httpx
from pydantic import ValidationError

from trainer.contracts import (
    MAX_POST_BYTES,
    MAX_QUESTIONS_PER_POST,
    AskedAbout,
    JudgeAnswer,
    JudgeQuestion,
    QuestionBatch,
    QuestionReply,
)
from trainer.judges.calls import Call, expand
from trainer.judges.inputs import InputProblem, JudgeInput
from trainer.judges.spec import BaseSpec
from trainer.judges.templates import canonical

from .judges import answers_to, storable
from .parts import RewardAnswer

GATHER_S = 0.02  # the questions of a step come at once and are sent together
PATIENCE_S = 60.0  # longer than a server takes to restart
AGAIN_S = 1.0
MOST_BYTES = MAX_POST_BYTES // 4
_TIMEOUT = httpx.Timeout(60.0, connect=5.0)


@dataclass(frozen=True)
class Gateway:
    """The address at which the server takes questions, and the judge's name in the config."""

    url: str
    token: str = field(repr=False)
    judge: str


class QuestionsRefused(Exception):
    """The server does not take the questions; the message says why."""


class GatewayJudge:
    """`key` is the version's digest. Connections are opened with the first question and kept until `close`."""

    def __init__(self, spec: BaseSpec, key: str, gateway: Gateway) -> None:
        self.spec, self.key = spec, key
        self._gateway = gateway
        self._client: httpx.AsyncClient | None = None
        self._waiting: list[JudgeQuestion] = []
        self._open: dict[str, asyncio.Future[QuestionReply]] = {}
        self._counted: set[str] = set()
        """Questions whose calls are counted already: two parts may ask the same."""
        self._tasks: set[asyncio.Task[None]] = set()

    async def ask(self, inputs: Sequence[JudgeInput]) -> list[list[RewardAnswer]]:
        inputs = [storable(given) for given in inputs]
        expanded = [self._calls(given) for given in inputs]
        usable = [given for given, calls in zip(inputs, expanded, strict=True) if not isinstance(calls, str)]
        found: dict[str, RewardAnswer] = {}
        away = ""
        for reply in await asyncio.gather(*map(self._answered, questions(self._gateway.judge, self.key, usable))):
            found |= {each.key: self._answer(reply.key, each) for each in reply.answers}
            self._counted |= set() if reply.away else {reply.key}
            away = away or reply.away
        for calls in expanded:
            for call in calls if not isinstance(calls, str) else ():
                if call.key not in found:
                    found[call.key] = RewardAnswer({}, None, problem=away or "the server did not answer it", away=True)
        paid: set[str] = set()
        return [answers_to(calls, {}, found, paid) for calls in expanded]

    async def close(self) -> None:
        for task in self._tasks:
            task.cancel()
        if self._client is not None:
            await self._client.aclose()
            self._client = None

    def _calls(self, given: JudgeInput) -> list[Call] | str:
        try:
            return expand(self.spec, self.key, given)
        except InputProblem as problem:
            return str(problem)

    def _answer(self, question: str, told: JudgeAnswer) -> RewardAnswer:
        called = told.called and question not in self._counted
        return RewardAnswer(
            {},
            told.parsed,
            told.raw,
            told.problem,
            called,
            told.tokens if called else 0,
            told.cost if called else None,
            told.latency_s if called else 0.0,
        )

    async def _answered(self, question: JudgeQuestion) -> QuestionReply:
        known = self._open.get(question.key)
        if known is None:
            known = self._open[question.key] = asyncio.get_running_loop().create_future()
            self._waiting.append(question)
            if len(self._waiting) == 1:
                self._begin(self._send())
        return await asyncio.shield(known)  # a call that is interrupted must not take the connection from others

    async def _send(self) -> None:
        await asyncio.sleep(GATHER_S)
        waiting, self._waiting = self._waiting, []
        for batch in _batches(waiting):
            self._begin(self._deliver(batch))

    async def _deliver(self, batch: list[JudgeQuestion]) -> None:
        """Asks until all questions are answered. A server that is away for longer than PATIENCE_S counts as a judge that is away."""
        left = {question.key: question for question in batch}
        heard = monotonic()
        while left:
            try:
                async for reply in self._replies(tuple(left.values())):
                    heard = monotonic()
                    if left.pop(reply.key, None):
                        self._settle(reply)
                heard = monotonic()
            except QuestionsRefused as refused:
                return self._give_up(left, str(refused))
            except (httpx.HTTPError, ValidationError) as error:
                if monotonic() - heard > PATIENCE_S:
                    return self._give_up(
                        left, f"the server of the run does not answer: {type(error).__name__}: {error}"
                    )
                await asyncio.sleep(AGAIN_S)
        return None

    async def _replies(self, left: tuple[JudgeQuestion, ...]) -> AsyncIterator[QuestionReply]:
        if self._client is None:
            headers = {"Authorization": f"Bearer {self._gateway.token}", "Content-Type": "application/json"}
            self._client = httpx.AsyncClient(headers=headers, timeout=_TIMEOUT, trust_env=False)
        body = QuestionBatch(questions=left).model_dump_json().encode()
        async with self._client.stream("POST", self._gateway.url, content=body) as response:
            if response.status_code != 200:
                text = (await response.aread()).decode("utf-8", "replace")[:300]
                if response.status_code < 500 and response.status_code not in (408, 429):
                    raise QuestionsRefused(
                        f"the server does not take the question (HTTP {response.status_code}): {text}"
                    )
                raise httpx.HTTPStatusError(
                    f"HTTP {response.status_code}: {text}", request=response.request, response=response
                )
            async for line in response.aiter_lines():
                if line:
                    yield QuestionReply.model_validate_json(line)

    def _settle(self, reply: QuestionReply) -> None:
        future = self._open.pop(reply.key, None)
        if future is not None and not future.done():
            future.set_result(reply)

    def _give_up(self, left: Mapping[str, JudgeQuestion], why: str) -> None:
        for key in left:
            self._settle(QuestionReply(key=key, answers=(), away=why))

    def _begin(self, work: Coroutine[None, None, None]) -> None:
        task = asyncio.create_task(work)
        self._tasks.add(task)
        task.add_done_callback(self._tasks.discard)


def questions(judge: str, digest: str, inputs: Sequence[JudgeInput]) -> Iterator[JudgeQuestion]:
    """One question for each sequence of inputs that differ only in their responses. Its key is made of the content and of the place in the
    run, so that a run that continues after a kill counts the costs at the same place."""
    groups: list[list[JudgeInput]] = []
    for given in inputs:
        if groups and _shared(groups[-1][0]) == _shared(given):
            groups[-1].append(given)
        else:
            groups.append([given])
    for group in groups:
        first = group[0]
        told = JudgeQuestion(
            key="0" * 64,
            judge=judge,
            example=first.example,
            conversation=first.conversation,
            criteria=first.criteria,
            reference=first.reference,
            about=tuple(
                AskedAbout(responses=dict(given.responses), place=str(given.subject.get("place", "")))
                for given in group
            ),
        )
        text = canonical([digest, told.model_dump(mode="json")])
        yield told.model_copy(update={"key": hashlib.sha256(text.encode()).hexdigest()})


def _shared(given: JudgeInput) -> JudgeInput:
    return replace(given, responses={}, subject={})


def _batches(waiting: Sequence[JudgeQuestion]) -> Iterator[list[JudgeQuestion]]:
    batch: list[JudgeQuestion] = []
    size = 0
    for question in waiting:
        length = len(question.model_dump_json().encode())
        if batch and (size + length > MOST_BYTES or len(batch) == MAX_QUESTIONS_PER_POST):
            yield batch
            batch, size = [], 0
        batch.append(question)
        size += length
    if batch:
        yield batch
