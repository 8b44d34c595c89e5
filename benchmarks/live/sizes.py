"""The sizes of the measurements, the same for all tools."""

from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from itertools import count
from math import sin
from time import perf_counter
from typing import Protocol

START_MS = 1_795_000_000_000  # of the points' clocks


@dataclass(frozen=True)
class Sizes:
    points: int = 400_000  # that are sent, of all senders together
    senders: int = 4
    keys: int = 100  # metrics of a sender, all at every step
    charts: int = 20
    chart_points: int = 50_000  # each
    series: int = 200
    series_points: int = 1_000_000  # each
    runs: int = 100
    run_points: int = 10_000  # each, of one metric
    viewers: int = 100
    steps: int = 60  # that viewers see
    hours: float = 8.0
    rounds: int = 5

    @property
    def sent_steps(self) -> int:
        return max(1, self.points // (self.senders * self.keys))


SMALL = Sizes(
    points=4_000, keys=20, charts=4, chart_points=2_000, series=6, series_points=20_000, runs=5, run_points=300,
    viewers=5, steps=4, hours=0.2, rounds=2,
)  # fmt: skip


class Tracker(Protocol):
    """A tool that is measured. Readings return seconds; every reading follows a new point, as during a run."""

    def send(self, sender: int, first: int, steps: int, keys: int) -> None:
        """Send one request of this many steps with this many metrics each, for the sender's own run."""

    steps_at_once: int

    def fill_charts(self, charts: int, points: int) -> None: ...
    def charts(self, charts: int) -> float: ...
    def fill_runs(self, runs: int, points: int) -> None: ...
    def compare(self, runs: int) -> float: ...


def name(key: int) -> str:
    return f"group{key % 4}/metric{key}"


def value(key: int, step: int) -> float:
    return sin(step * (key + 1) / 300) + (step * 2654435761 % 1000) / 5000


def points_per_second(tracker: Tracker, sizes: Sizes) -> float:
    """Points per second of senders that send at the same time; each sends its next request after the answer to the one before. Steps come in
    order, as those of a run do."""
    at_once = tracker.steps_at_once

    def work(sender: int) -> None:
        for first in range(1, sizes.sent_steps + 1, at_once):
            tracker.send(sender, first, min(at_once, sizes.sent_steps + 1 - first), sizes.keys)

    for sender in range(sizes.senders):  # make the sender's run and open its connection
        tracker.send(sender, 0, 1, sizes.keys)
    started = perf_counter()
    with ThreadPoolExecutor(sizes.senders) as pool:
        list(pool.map(work, range(sizes.senders)))
    return sizes.senders * sizes.sent_steps * sizes.keys / (perf_counter() - started)


def timed(work: Callable[[], object]) -> float:
    started = perf_counter()
    work()
    return perf_counter() - started


def numbers(start: int) -> Iterator[int]:
    """The steps of the points that come before each reading."""
    return count(start)
