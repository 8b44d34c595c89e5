"""Responses to rewards for loops, which wait: an event loop of its own asks judges and services meanwhile."""

import asyncio
import threading
from collections.abc import Coroutine, Sequence
from concurrent.futures import Future
from functools import partial
from queue import Empty, SimpleQueue
from typing import Any, Protocol

from trainer.config.rewards import RewardPart
from trainer.contracts import Example, Message, PartResult, Rubric
from trainer.inference.sampling import SampleResult
from trainer.rewards import Composed, Item, Services, breakdown, guard, scoring
from trainer.rewards.composition import rubric_score, rubric_verdicts
from trainer.rewards.journal import Journal

from .trajectory import Reward

POLL_S = 0.05
FIRST_WAIT_S, LONGEST_WAIT_S = 2.0, 60.0


class Watch(Protocol):
    """Who waits for rewards."""

    def check(self) -> None:
        """Called a few times a second; what it raises ends the scoring."""
        ...

    def paused(self, reason: str) -> None:
        """Somebody who must be asked cannot be asked; they are asked again and again."""
        ...

    def resumed(self) -> None:
        """They have answered."""
        ...


class Unwatched:
    def check(self) -> None:
        pass

    def paused(self, reason: str) -> None:
        pass

    def resumed(self) -> None:
        pass


class Scorer:
    """Rewards as configured. A response that a part cannot value is excluded with the reason, never scored zero.

    Used by one thread. `close` ends the loop and whatever the services hold open.
    """

    def __init__(
        self,
        parts: Sequence[RewardPart],
        longest: int,
        services: Services | None = None,
        journal: Journal | None = None,
    ) -> None:
        self._parts, self.longest = tuple(parts), longest
        self._services, self._journal = services or Services(), journal
        self._loop: asyncio.AbstractEventLoop | None = None
        self._news: SimpleQueue[str] = SimpleQueue()
        self._again = FIRST_WAIT_S
        """Seconds until somebody who could not be asked is asked again."""

    @property
    def needs_greedy(self) -> bool:
        """Whether a part compares with the policy's likeliest answer."""
        return any(getattr(part, "against", "") == "greedy" for part in self._parts)

    def score(self, items: Sequence[Item], watch: Watch | None = None) -> list[Reward]:
        """The reward of each item, in order; items of a group stand together. Raises what `watch` raises."""
        if not items:
            return []
        watch = watch or Unwatched()
        scored = self._wait(self._submit(self._score(items)), watch)
        return [_reward(self._parts, item, composed) for item, composed in zip(items, scored, strict=True)]

    def saved(self) -> None:
        """A checkpoint holds all that was scored so far."""
        if self._journal:
            self._journal.forget()

    def close(self) -> None:
        if self._loop is not None:
            self._submit(self._services.close()).result(timeout=30.0)
            self._loop.call_soon_threadsafe(self._loop.stop)
            self._thread.join(timeout=5.0)
            self._loop = None
        if self._journal:
            self._journal.close()

    async def _score(self, items: Sequence[Item]) -> list[Composed]:
        groups: dict[str, list[Item]] = {}
        for item in items:
            groups.setdefault(item.place.rpartition("/")[0], []).append(item)
        async with asyncio.TaskGroup() as tasks:
            scoring_groups = [
                tasks.create_task(scoring.score(self._parts, group, self._services, self._pause, self._journal))
                for group in groups.values()
            ]
        by_place = {
            item.place: composed
            for group, task in zip(groups.values(), scoring_groups, strict=True)
            for item, composed in zip(group, task.result(), strict=True)
        }
        return [by_place[item.place] for item in items]

    async def _pause(self, reason: str) -> None:
        self._news.put(reason)
        await asyncio.sleep(self._again)
        self._again = min(2 * self._again, LONGEST_WAIT_S)

    def _wait(self, scoring: "Future[list[Composed]]", watch: Watch) -> list[Composed]:
        paused = False
        try:
            while not scoring.done():
                watch.check()
                reason = self._reason()
                if reason and not paused:
                    watch.paused(reason)
                    paused = True
                with_limit(scoring, POLL_S)
        except BaseException:
            scoring.cancel()
            raise
        finally:
            self._again = FIRST_WAIT_S
        if paused:
            watch.resumed()
        return scoring.result()

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


class RewardFunction:
    """One response at a time, by parts that need to know nothing but its rubric."""

    def __init__(self, components: Sequence[RewardPart], max_new_tokens: int) -> None:
        self._scorer = Scorer(components, max_new_tokens)

    def __call__(self, rubric: Rubric, result: SampleResult) -> Reward:
        example = Example(key="response", prompt=(Message(role="user", content=""),))
        item = Item("response/0", example, rubric, result.text, len(result.tokens), self._scorer.longest)
        return self._scorer.score([item])[0]


def with_limit(future: "Future[Any]", seconds: float) -> None:
    """Waits for it, but no longer."""
    done = threading.Event()
    future.add_done_callback(lambda _: done.set())
    done.wait(seconds)


def _reward(parts: Sequence[RewardPart], item: Item, composed: Composed) -> Reward:
    shown = rubric_verdicts(parts, composed.parts)
    score = None
    if shown or not composed.excluded:  # what has just failed is not tried again, only to be shown
        score, _ = guard.guarded(partial(rubric_score, item, shown), guard.SECONDS)
    given = shown or (score.verdicts if score else ())
    return Reward(
        composed.total,
        composed.components,
        breakdown(item.rubric, given) if item.rubric and given else (),
        score.score if score else None,
        score.clipped if score else None,
        composed.excluded,
        tuple(_result(part, composed, shown) for part in parts),
    )


def _result(part: RewardPart, composed: Composed, displayed: Sequence[Any]) -> PartResult:
    """`displayed` verdicts are told with the criteria; those of another part go with the part."""
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
