"""An engine that decodes several responses side by side, each slower the more there are."""

import heapq
import math
from bisect import bisect_right
from dataclasses import dataclass

from trainer.scheduling import Start, Stretch

from .config import Engine as EngineConfig


@dataclass(slots=True)
class _Response:
    start: Start
    from_token: int
    to_token: int
    begun: float
    """On the engine's own clock, which counts the tokens that any response could have got since it came up."""
    ends: float


class Engine:
    """Its own clock runs at one token per decoding step, so a response's end on it never moves."""

    def __init__(self, name: str, config: EngineConfig, now: float, version: int) -> None:
        self.name, self._config = name, config
        self._now, self._clock = now, 0.0
        self._responses: dict[tuple[int, int], _Response] = {}
        self._ends: list[tuple[float, tuple[int, int]]] = []
        self._resting: list[Start] = []
        self._pushes: list[tuple[float, int]] = [(0.0, version)]
        self.stamp = 0
        """Changes whenever the next end may have moved."""
        self.busy_s = self.slot_s = 0.0
        """Time with any response, and the same counted for each of them."""

    def start(self, start: Start, tokens: int, now: float) -> None:
        self.advance(now)
        done = start.stretches[-1].end if start.stretches else 0
        reading = self._config.start_s / self._step_s(len(self._responses) + 1)
        response = _Response(start, done, tokens, self._clock + reading, self._clock + reading + tokens - done)
        self._responses[start.sample] = response
        heapq.heappush(self._ends, (response.ends, start.sample))
        self.stamp += 1

    @property
    def busy(self) -> bool:
        return bool(self._responses)

    def start_of(self, sample: tuple[int, int]) -> Start | None:
        """What a response that is being sampled was started with."""
        response = self._responses.get(sample)
        return response.start if response else None

    def rested(self) -> list[Start]:
        """Static batching: the finished ones that waited for those beside them."""
        ended, self._resting = self._resting, []
        return ended

    def stop(self, sample: tuple[int, int], now: float) -> int | None:
        """Take a response out; the tokens it has, or None when it is not being sampled any more."""
        self.advance(now)
        response = self._responses.pop(sample, None)
        if response is None:
            return None
        self.stamp += 1
        got = max(0, math.floor(self._clock - response.begun))
        return min(response.to_token - 1, response.from_token + got)

    def push(self, version: int, pause_s: float, now: float) -> None:
        """New weights, after a pause in which nothing is decoded."""
        self.advance(now)
        self._now += pause_s
        self._pushes.append((self._clock, version))
        self.stamp += 1

    def next_end(self) -> float | None:
        """When the next response will have all its tokens, if nothing comes between."""
        while self._ends and self._gone(self._ends[0]):
            heapq.heappop(self._ends)
        if not self._ends:
            return None
        return self._now + (self._ends[0][0] - self._clock) * self._step_s(len(self._responses))

    def ended(self, now: float) -> list[Start]:
        """Take out the next response. With static batching it waits for the others beside it."""
        self.advance(now)
        _, sample = heapq.heappop(self._ends)
        self._resting.append(self._responses.pop(sample).start)
        self.stamp += 1
        if self._config.batching == "static" and self._responses:
            return []
        return self.rested()

    def stretches(self, start: Start, upto: int, pinned: bool) -> tuple[Stretch, ...]:
        """The weights that sampled tokens up to `upto`, which have just been reached."""
        first = start.stretches[-1].end if start.stretches else 0
        if pinned or upto <= first:
            added = [Stretch(start.version, first, upto)] if upto > first else []
            return (*start.stretches, *added)
        begun = self._clock - (upto - first)
        place = max(0, bisect_right(self._pushes, (begun, math.inf)) - 1)
        cuts = [(max(first, first + math.floor(at - begun)), version) for at, version in self._pushes[place:]]
        ends = [min(upto, cut) for cut, _ in cuts[1:]] + [upto]
        stretches = [Stretch(version, cut, end) for (cut, version), end in zip(cuts, ends, strict=True) if end > cut]
        return (*start.stretches, *stretches)

    def advance(self, now: float) -> None:
        elapsed = now - self._now
        if elapsed <= 0:  # in the pause of a push
            return
        self._now, n = now, len(self._responses)
        if n:
            self._clock += elapsed / self._step_s(n)
            self.busy_s += elapsed
            self.slot_s += n * elapsed

    def _gone(self, entry: tuple[float, tuple[int, int]]) -> bool:
        response = self._responses.get(entry[1])
        return response is None or response.ends != entry[0]

    def _step_s(self, n: int) -> float:
        return self._config.step_s + n * self._config.response_s
