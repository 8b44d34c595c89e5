"""Rewards of responses for loops, which wait: a separate event loop asks judges and services meanwhile."""

import asyncio
import threading
from collections import deque
from collections.abc import Coroutine, Mapping, Sequence
from concurrent.futures import FIRST_EXCEPTION, Future, wait
from contextlib import nullcontext
from dataclasses import dataclass
from decimal import Decimal
from functools import partial
from queue import Empty, SimpleQueue
from typing import Any, Protocol

from trainer import time_sharing
from trainer.config import OnPolicyConfig
from trainer.config.rewards.parts import RewardPart, parsed
from trainer.contracts import PartResult, Verdict
from trainer.rewards import Composed, Item, Services, guard, scoring
from trainer.rewards.composition import rubric_score, rubric_verdicts
from trainer.rewards.journal import Journal, Notes
from trainer.rubrics import breakdown

from .trajectory import Reward

POLL_S = 0.05
FIRST_WAIT_S, LONGEST_WAIT_S = 2.0, 60.0
MOST_RAN = 5000
"""Times of measured parts that wait for the watch. If there are more, the oldest are forgotten."""


class RewardWatch(Protocol):
    """The object that waits for rewards."""

    def check(self) -> None:
        """Called a few times a second; an exception of it ends the scoring."""
        ...

    def paused(self, reason: str) -> None:
        """Called when a service that must be asked does not answer; it is asked again and again."""
        ...

    def resumed(self) -> None:
        """Called when the service has answered."""
        ...

    def ran(self, name: str, start: float, end: float) -> None:
        """Called at the end for each part of the reward and each group: when it was measured, by `time.monotonic`."""
        ...


class Unwatched:
    """A watch that ignores everything."""

    def check(self) -> None:
        pass

    def paused(self, reason: str) -> None:
        pass

    def resumed(self) -> None:
        pass

    def ran(self, name: str, start: float, end: float) -> None:
        pass


@dataclass(frozen=True)
class Begun:
    """Responses whose rewards are on their way."""

    items: Sequence[Item]
    scoring: "Future[list[Composed]]"

    def cancel(self) -> None:
        self.scoring.cancel()


class RewardScorer:
    """Rewards as configured. If a part has no value for a response, the response is excluded with the reason, never scored zero.

    Used by one thread. `close` ends the event loop and everything that the services hold open.
    """

    def __init__(self, config: OnPolicyConfig, services: Services | None = None, journal: Notes | None = None) -> None:
        composition = config.composition
        self.parts: tuple[RewardPart, ...] = composition.parts
        self.longest = config.rollout.max_new_tokens
        self._expression = parsed(self.parts, composition.expression)
        self._services, self.journal = services or Services(), journal
        self._loop: asyncio.AbstractEventLoop | None = None
        self._news: SimpleQueue[str] = SimpleQueue()
        self._again = FIRST_WAIT_S
        """Seconds until a service that did not answer is asked again."""
        self._ran: deque[tuple[str, float, float]] = deque(maxlen=MOST_RAN)
        self._count_spent({}, None)

    @property
    def needs_greedy(self) -> bool:
        """Whether a part compares with the policy's most likely answer."""
        return any(getattr(part, "against", "") == "greedy" for part in self.parts)

    @property
    def asks(self) -> bool:
        """Whether a part asks a judge, a service or a package: scoring should then begin while others are sampled."""
        return any(part.asks_judge or part.kind in ("http", "python") for part in self.parts)

    def score(self, items: Sequence[Item], watch: RewardWatch | None = None) -> list[Reward]:
        """The reward of each item, in order; places tell groups apart. Raises what `watch` raises."""
        return self.finish([self.begin(items)], watch) if items else []

    def begin(self, items: Sequence[Item]) -> Begun:
        """Begin to compute the rewards of these items in the background; `finish` waits for them."""
        return Begun(items, self._submit(self._score(items)))

    def finish(self, begun: Sequence[Begun], watch: RewardWatch | None = None) -> list[Reward]:
        """The rewards of all begun items, in order. Raises what `watch` raises, and then gives all of them up."""
        watch = watch or Unwatched()
        self._wait([each.scoring for each in begun], watch)
        while self._ran:
            watch.ran(*self._ran.popleft())
        return [
            _reward(self.parts, item, composed)
            for each in begun
            for item, composed in zip(each.items, each.scoring.result(), strict=True)
        ]

    def state_dict(self) -> dict[str, Any]:
        """The amounts that judges with a budget have spent, read immediately before a checkpoint is written."""
        budgets = self._services.budgets
        spent = {name: [budget.spent_tokens, str(budget.spent_money)] for name, budget in budgets.items()}
        if isinstance(self.journal, Journal):
            self.journal.checkpoint(spent)
        return spent

    def load_state_dict(self, state: Mapping[str, Any]) -> None:
        self._count_spent(state, dict(state))

    def forget_missing(self) -> None:
        """Drop items without a value, so that the run that continues asks about them again."""
        if isinstance(self.journal, Journal):
            self.journal.forget_missing()

    def close(self) -> None:
        if self._loop is not None:
            self._submit(self._services.close()).result(timeout=30.0)
            self._loop.call_soon_threadsafe(self._loop.stop)
            self._thread.join(timeout=5.0)
            self._loop = None
        if isinstance(self.journal, Journal):
            self.journal.close()

    def _count_spent(self, spent: Mapping[str, Any], mark: dict[str, Any] | None) -> None:
        """Count what was spent by the checkpoint and what the run had asked for after it, because that was paid for too."""
        used = self.journal.used(mark) if isinstance(self.journal, Journal) else {}
        for name, budget in self._services.budgets.items():
            tokens, money = spent.get(name, (0, 0))
            since = [used[part.name] for part in self.parts if part.asks_judge == name and part.name in used]
            budget.spent_tokens = tokens + sum(each.tokens for each in since)
            budget.spent_money = Decimal(money) + sum((Decimal(str(each.cost or 0)) for each in since), Decimal(0))

    async def _score(self, items: Sequence[Item]) -> list[Composed]:
        groups: dict[str, list[Item]] = {}
        for item in items:
            groups.setdefault(item.place.rpartition("/")[0], []).append(item)
        async with asyncio.TaskGroup() as tasks:
            each = [
                tasks.create_task(
                    scoring.score(
                        self.parts, group, self._services, self._pause, self.journal, self._expression, self._note
                    )
                )
                for group in groups.values()
            ]
        by_place = {
            item.place: composed
            for group, task in zip(groups.values(), each, strict=True)
            for item, composed in zip(group, task.result(), strict=True)
        }
        return [by_place[item.place] for item in items]

    def _note(self, name: str, start: float, end: float) -> None:
        self._ran.append((name, start, end))

    async def _pause(self, reason: str) -> None:
        self._news.put(reason)
        wait, self._again = self._again, min(2 * self._again, LONGEST_WAIT_S)
        await asyncio.sleep(wait)

    def _wait(self, begun: Sequence["Future[list[Composed]]"], watch: RewardWatch) -> None:
        """Wait until all rewards are there. Raises the error of the first that failed."""
        paused, left = False, set(begun)
        try:
            while left:
                with time_sharing.others_may_compute() if self.asks else nullcontext():
                    done, left = wait(left, POLL_S, FIRST_EXCEPTION)
                for each in done:
                    each.result()
                watch.check()
                if left and (reason := self._reason()) and not paused:
                    watch.paused(reason)
                    paused = True
        except BaseException:
            for each in begun:
                each.cancel()
            raise
        finally:
            self._again = FIRST_WAIT_S
            while self._reason():
                pass  # reported while others were sampled, and over since
        if paused:
            watch.resumed()

    def _reason(self) -> str:
        try:
            return self._news.get_nowait()
        except Empty:
            return ""

    def _submit(self, work: Coroutine[Any, Any, Any]) -> "Future[Any]":
        if self._loop is None:
            self._loop = asyncio.new_event_loop()
            self._thread = threading.Thread(target=self._loop.run_forever, name="rewards", daemon=True)
            self._thread.start()
        return asyncio.run_coroutine_threadsafe(work, self._loop)


def _reward(parts: Sequence[RewardPart], item: Item, composed: Composed) -> Reward:
    shown = rubric_verdicts(parts, composed.parts)
    score = None
    if shown or not composed.excluded:  # an item that has just failed is not tried again only to be shown
        score, _ = guard.call_guarded(partial(rubric_score, item, shown), guard.SECONDS)
    given = shown or (score.verdicts if score else ())
    return Reward(
        composed.total,
        composed.components,
        breakdown(item.rubric, given) if item.rubric and given else (),
        score.score if score else None,
        score.clipped if score else None,
        composed.excluded,
        tuple(_result(part, composed, shown) for part in parts),
        composed.total is None and any(composed.parts[part.name].away for part in parts if not part.shadow),
    )


def _result(part: RewardPart, composed: Composed, displayed: Sequence[Verdict]) -> PartResult:
    """The result of a part. `displayed` verdicts are reported with the criteria; those of another part are reported with the part."""
    found = composed.parts[part.name]
    shown = found.shown
    if found.verdicts and found.verdicts != displayed:
        shown = {"verdicts": [verdict.model_dump(mode="json") for verdict in found.verdicts]}
    return PartResult(
        name=part.name,
        kind=part.kind,
        value=found.value,
        why=found.why,
        shadow=part.shadow,
        shown=shown,
        calls=found.usage.calls,
        tokens=found.usage.tokens,
        cost=found.usage.cost,
        latency_s=round(found.usage.latency_s, 4),
    )
