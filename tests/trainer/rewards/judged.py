"""Judges for tests: scripted ones, and real ones over the chat server."""

import asyncio
import json
import re
from collections.abc import Awaitable, Callable, Sequence
from typing import Any

from benchmarks.chatserver import ChatServer
from trainer.contracts import Criterion, Example, Message, Rubric, VerifierSpec
from trainer.judges.budget import Budget
from trainer.judges.chat import Prices, Target
from trainer.judges.spec import digest, resolve
from trainer.rewards import Composed, Item, Services, scoring
from trainer.rewards.journal import Journal
from trainer.rewards.judges import EngineJudge

CRITERIA = (
    Criterion(id="short", text="Is short.", points=1, verifier=VerifierSpec(name="word_count", args={"max": 3})),
    Criterion(id="kind", text="Is kind.", points=2),
    Criterion(id="rude", text="Is rude.", points=-1),
)
RUBRIC = Rubric(criteria=CRITERIA)
_RESPONSE = re.compile(r"<response>\n(.*?)\n</response>", re.DOTALL)
_CRITERION = re.compile(r"<criterion>\n(.*?)\n</criterion>", re.DOTALL)


def item(response: str = "How kind", index: int = 0, **changes: Any) -> Item:
    example = Example(
        key="row", prompt=(Message(role="user", content="Hi"),), rubric=RUBRIC, reference=changes.pop("reference", None)
    )
    return Item(
        f"train/1/0/{index}", example, changes.pop("rubric", RUBRIC), response, 5, 60, changes.pop("baseline", None)
    )


def literal(body: dict[str, Any]) -> str:
    """A judge that calls a criterion met if its last word is in the response."""
    asked = body["messages"][-1]["content"]
    word = _CRITERION.findall(asked)[-1].rstrip(".").split()[-1]
    return json.dumps({"explanation": f"I looked for {word}.", "met": word in _RESPONSE.findall(asked)[0]})


def longer(body: dict[str, Any]) -> str:
    """A pairwise judge that prefers the longer of the two responses in its prompt."""
    first, second = _RESPONSE.findall(body["messages"][-1]["content"])
    verdict = "tie" if len(first) == len(second) else "A" if len(first) > len(second) else "B"
    return json.dumps({"reasons": ["it is longer"], "verdict": verdict})


def judge(server: ChatServer, kind: str = "criterion", budget: Budget | None = None, **spec: Any) -> EngineJudge:
    resolved = resolve({"kind": kind, "retries": 0, **spec})
    target = Target(server.url, "m", retries=0, prices=Prices(1, 1))  # type: ignore[arg-type]
    return EngineJudge(resolved, digest(resolved, "1"), target, budget)


def score(
    parts: Sequence[Any],
    items: Sequence[Item],
    *,
    serve: Callable[[dict[str, Any]], str] = literal,
    kind: str = "criterion",
    wait: Callable[[ChatServer, str], Awaitable[None]] | None = None,
    journal: Journal | None = None,
    prepare: Callable[[ChatServer], None] = lambda server: None,
    budget: Budget | None = None,
    **spec: Any,
) -> tuple[list[Composed], ChatServer]:
    """The rewards by a judge `j` that the chat server answers for, and the server."""

    async def main() -> tuple[list[Composed], ChatServer]:
        async with ChatServer(answer=serve) as server:
            prepare(server)
            asked = judge(server, kind, budget, **spec)

            async def pause(reason: str) -> None:
                if wait is None:
                    raise AssertionError(f"paused: {reason}")
                await wait(server, reason)

            try:
                return await scoring.score(parts, items, Services(judges={"j": asked}), pause, journal), server
            finally:
                await asked.close()

    return asyncio.run(main())
