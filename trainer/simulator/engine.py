"""An engine that decodes several responses side by side; the more there are, the slower each is."""

import heapq
import math
from bisect import bisect_right
from collections import Counter
from dataclasses import dataclass

from trainer.scheduling import Start, Stretch

from .config import Engine as EngineConfig


@dataclass(slots=True)
class _Response:
    start: Start
    from_token: int
    to_token: int
    begun: float
    """The beginning by the engine's own clock, which counts the tokens that any response could have got since the engine started."""
    ends: float


class SimulatedEngine:
    """An engine whose own clock runs at one token per decoding step, so that the end of a response on it never moves.

    Like a worker of a run, the engine keeps responses that do not fit and begins the next one when a place becomes free. With `pinned` a
    response is sampled by the version that it was started with, otherwise by the version that was pushed last.
    """

    def __init__(self, name: str, config: EngineConfig, now: float, version: int, pinned: bool) -> None:
        self.name, self._config, self._pinned = name, config, pinned
        self._now, self._clock = now, 0.0
        self._responses: dict[tuple[int, int], _Response] = {}
        self._waiting: list[tuple[Start, int]] = []
        self._open: Counter[int] = Counter()
        """The number of responses by version. A version that was opened stays until another takes its room."""
        self._ends: list[tuple[float, tuple[int, int]]] = []
        self._pushes: list[tuple[float, int]] = [(0.0, version)]
        self.stamp = 0
        """A number that changes whenever the next end may have moved."""
        self.busy_s = self.slot_s = 0.0
        """The time with any response, and the same time counted for each response."""

    def start(self, start: Start, tokens: int, now: float) -> None:
        self.advance(now)
        self._waiting.append((start, tokens))
        self._fill()

    def _fill(self) -> None:
        self.stamp += 1
        waiting = []
        for start, tokens in self._waiting:
            if len(self._responses) < self._config.slots and self._opened(start.version):
                self._begin(start, tokens)
            else:
                waiting.append((start, tokens))
        self._waiting = waiting

    def _begin(self, start: Start, tokens: int) -> None:
        done = _done(start)
        self._pause(self._config.start_s)
        response = _Response(start, done, tokens, self._clock, self._clock + tokens - done)
        self._responses[start.sample] = response
        self._open[start.version] += 1
        heapq.heappush(self._ends, (response.ends, start.sample))

    def _opened(self, version: int) -> bool:
        """Whether responses of this version may be sampled; versions without responses make room for it."""
        if not self._pinned or version in self._open:
            return True
        for idle in [each for each, count in self._open.items() if not count]:
            del self._open[idle]
        if self._config.versions is not None and len(self._open) >= self._config.versions:
            return False
        self._pause(self._config.load_s)
        self._open[version] = 0
        return True

    def _take_out(self, sample: tuple[int, int]) -> _Response | None:
        response = self._responses.pop(sample, None)
        if response is not None:
            self._open[response.start.version] -= 1
        return response

    def _pause(self, seconds: float) -> None:
        self._now += seconds
        self.busy_s += seconds

    def stop(self, sample: tuple[int, int], now: float) -> tuple[Start, int] | None:
        """Take a response out: its start and the number of its tokens. None if the response is not here any more."""
        self.advance(now)
        for place, (start, _) in enumerate(self._waiting):
            if start.sample == sample:
                del self._waiting[place]
                return start, _done(start)
        response = self._take_out(sample)
        if response is None:
            return None
        self._fill()
        got = response.from_token + max(0, math.floor(self._clock - response.begun))
        return response.start, min(response.to_token - 1, got)

    def push(self, version: int, now: float) -> None:
        """Load new weights, after a pause in which nothing is decoded. Pinned responses continue with theirs."""
        self.advance(now)
        self._pause(self._config.load_s)
        self._pushes.append((self._clock, version))
        self.stamp += 1

    def next_end(self) -> float | None:
        """The time at which the next response will have all its tokens, if nothing happens before; None without responses."""
        while self._ends and self._gone(self._ends[0]):
            heapq.heappop(self._ends)
        if not self._ends:
            return None
        return self._now + (self._ends[0][0] - self._clock) * self._step_s(len(self._responses))

    def ended(self, now: float) -> Start:
        """Take out the response that ends next; a waiting one takes its place."""
        self.advance(now)
        _, sample = heapq.heappop(self._ends)
        response = self._take_out(sample)
        assert response is not None  # noqa: S101 - `next_end` has just looked
        self._fill()
        return response.start

    def stretches(self, start: Start, upto: int, pinned: bool) -> tuple[Stretch, ...]:
        """The weights that sampled the tokens up to `upto`, which has just been reached."""
        first = _done(start)
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
        passes = sum(count > 0 for count in self._open.values()) if self._pinned else 1
        return max(1, passes) * self._config.step_s + n * self._config.response_s


def _done(start: Start) -> int:
    """The number of tokens that a response that continues already has."""
    return start.stretches[-1].end if start.stretches else 0
