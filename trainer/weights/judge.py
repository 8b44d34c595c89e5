"""A judge with local weights answers questions."""

import asyncio
import json
from collections.abc import Callable, Mapping, Sequence
from decimal import Decimal
from itertools import islice
from pathlib import Path
from time import perf_counter
from typing import Any

from trainer.inference.adapters import whole_directory
from trainer.inference.models import best_device
from trainer.judges.answers import Reading
from trainer.judges.base import BaseSpec
from trainer.judges.budget import Budget, within
from trainer.judges.calls import Call, read
from trainer.judges.chat import ChatReply, ChatRequest, Prices
from trainer.judges.engine import Outcome, run
from trainer.judges.local import AT_ONCE_TEXT, AT_ONCE_YES_NO, question, reply_of
from trainer.judges.spec import resolve
from trainer.logit_judge.answering import Answering
from trainer.logit_judge.calls import LocalCall
from trainer.rewards.verdict_store import own_verdict

from .client import JobClient, JobStopped

_COLLECT_S = 0.01  # seconds in which questions are collected and then answered in one pass


class LoadedChat:
    """Answers chat requests with weights in this process; requests that wait together are answered together.

    `yes_no` and `wording` are those of `trainer.judges.local.LocalTarget`. `look` is called while the weights work; an exception of it
    ends the request.
    """

    def __init__(
        self,
        answering: Answering,
        yes_no: bool,
        wording: str,
        budget: Budget | None = None,
        prices: Prices | None = None,
        look: Callable[[], None] = lambda: None,
    ) -> None:
        self._answering, self._yes_no, self._wording = answering, yes_no, wording
        self._budget, self._prices, self._look = budget, prices, look
        self._waiting: list[tuple[LocalCall, asyncio.Future[dict[str, Any]]]] = []
        self._serving: asyncio.Task[None] | None = None

    async def chat(self, request: ChatRequest) -> ChatReply:
        """Answer a request. Raises EndpointProblem, and what `look` raises."""
        return await within(self._budget, request, self._prices, self._ask)

    async def _ask(self, request: ChatRequest) -> ChatReply:
        started = perf_counter()
        answer: asyncio.Future[dict[str, Any]] = asyncio.get_running_loop().create_future()
        call = LocalCall.model_validate(question(str(id(answer)), request, self._yes_no, self._wording))
        self._waiting.append((call, answer))
        if self._serving is None or self._serving.done():
            self._serving = asyncio.create_task(self._serve())
        return reply_of(await answer, perf_counter() - started)

    async def _serve(self) -> None:
        await asyncio.sleep(_COLLECT_S)
        while self._waiting:
            together, self._waiting = self._waiting, []
            try:
                calls = [call for call, _ in together]
                verdicts = await asyncio.to_thread(self._answering.answer, calls, self._look)
            except Exception as error:
                for _, answer in together:
                    answer.set_exception(error)
                return
            for (_, answer), verdict in zip(together, verdicts, strict=True):
                if not answer.done():
                    answer.set_result(verdict)


def work(client: JobClient) -> Mapping[str, Any]:
    """One result per item, a question `{"key", "record", "subject"}`: a `trainer.contracts.OwnVerdict`.

    Raises JobStopped, with the reason, if the budget is used up.
    """
    params = client.assignment.params
    spec, prices = resolve(params["spec"]), _prices(params["prices"])
    folder = whole_directory(client.assignment.models["model"], Path(client.assignment.folder) / "merged")
    answering = Answering(folder, device=best_device())
    chat = LoadedChat(answering, params["yes_no"], params["wording"], _budget(params["budget"]), prices, client.check)
    client.phase = "judging"
    at_once = AT_ONCE_YES_NO if params["yes_no"] else AT_ONCE_TEXT
    items = client.items()
    with asyncio.Runner() as runner:
        while together := list(islice(items, at_once)):
            outcomes, halted = runner.run(judged(spec, [_call(spec, item) for item in together], chat, prices))
            client.store([own_verdict(outcome).model_dump(mode="json") for outcome in outcomes])
            if halted:
                raise JobStopped(halted)
    return {}


async def judged(
    spec: BaseSpec, calls: Sequence[Call], chat: LoadedChat, prices: Prices | None
) -> tuple[list[Outcome], str]:
    """The outcome of each call that was made, and why some were not made; unreadable answers are asked for again."""

    def reading(call: Call, reply: ChatReply) -> Reading:
        return read(spec, call.subject, reply.text, complete=reply.finish_reason != "length")

    found: list[Outcome] = []
    counts = await run(
        calls, chat, reading, on_outcome=found.extend, concurrency=len(calls), retries=spec.retries, prices=prices
    )
    order = {call.key: place for place, call in enumerate(calls)}
    return sorted(found, key=lambda outcome: order[outcome.call.key]), counts.halted


def _call(spec: BaseSpec, item: Mapping[str, Any]) -> Call:
    asked = json.loads(item["record"])
    request = ChatRequest(tuple(asked["messages"]), spec.sampling, None, asked["seed"])
    return Call(item["key"], request, dict(item["subject"]), item["record"])


def _prices(told: Sequence[str] | None) -> Prices | None:
    return Prices(Decimal(told[0]), Decimal(told[1])) if told else None


def _budget(told: Mapping[str, Any] | None) -> Budget | None:
    if not told:
        return None
    money = told["money"]
    return Budget(told["tokens"], None if money is None else Decimal(money))
