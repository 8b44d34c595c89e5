"""Measures the time of asynchronous sampling by kind of work: the simulator is calibrated with it."""

import time
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, NamedTuple


class WorkerTurn(NamedTuple):
    """A turn of a worker: `rows` responses by `versions` sets of weights; `joined` of the responses were new."""

    versions: int
    rows: int
    joined: int


@dataclass
class WorkerTimes:
    """The number of turns of each kind and their seconds; `loads` are the same two numbers for weights that were loaded."""

    turns: dict[WorkerTurn, tuple[int, float]] = field(default_factory=dict)
    loads: tuple[int, float] = (0, 0.0)

    def turn(self, versions: int, rows: int, joined: int, seconds: float, count: int = 1) -> None:
        kind = WorkerTurn(versions, rows, joined)
        had, took = self.turns.get(kind, (0, 0.0))
        self.turns[kind] = had + count, took + seconds

    def load(self, seconds: float, count: int = 1) -> None:
        self.loads = self.loads[0] + count, self.loads[1] + seconds

    def add(self, other: "WorkerTimes") -> None:
        for kind, (count, seconds) in other.turns.items():
            self.turn(*kind, seconds, count)
        self.load(other.loads[1], other.loads[0])

    def written(self) -> dict[str, Any]:
        """The times as JSON: a row [versions, rows, joined, count, seconds] for each kind of turn."""
        return {"turns": [[*kind, *found] for kind, found in self.turns.items()], "loads": list(self.loads)}

    @classmethod
    def read(cls, written: Mapping[str, Any]) -> "WorkerTimes":
        turns = {WorkerTurn(*row[:3]): (row[3], row[4]) for row in written["turns"]}
        return cls(turns, (written["loads"][0], written["loads"][1]))


class WorkerStretch(NamedTuple):
    """A stretch of a worker's time. Clocks of machines differ, so it says how many seconds before the report it began."""

    loading: bool
    """Whether it loaded weights; else it sampled."""
    ago_s: float
    seconds: float


class WorkerDiary:
    """The work of a worker since its last report. Turns that follow one another without a pause are one stretch."""

    MOST = 50
    """Stretches of one report. A worker that reports nothing for long keeps its last ones."""

    def __init__(self) -> None:
        self._stretches: list[tuple[bool, float, float]] = []

    def did(self, loading: bool, start: float, end: float) -> None:
        last = self._stretches[-1] if self._stretches else None
        if last and last[0] == loading and start <= last[2]:
            self._stretches[-1] = loading, last[1], end
        else:
            self._stretches.append((loading, start, end))
            del self._stretches[: -self.MOST]

    def taken(self, now: float) -> tuple[WorkerStretch, ...]:
        found, self._stretches = self._stretches, []
        return tuple(WorkerStretch(loading, now - start, end - start) for loading, start, end in found)


class LearnerClock:
    """The parts of the learner's time, as the schedule sees it: it trains, makes the rest of its step, waits for a batch."""

    def __init__(self) -> None:
        self._at = time.monotonic()
        self._seconds: dict[str, float] = {}

    def updated(self) -> None:
        self._note("update_s")

    def ready(self) -> None:
        self._note("rest_s")

    def taken(self) -> dict[str, float]:
        """Seconds of the update before, of the rest of its step, and of the wait. The first batch has only the wait."""
        self._note("wait_s")
        seconds, self._seconds = self._seconds, {}
        return seconds

    def _note(self, name: str) -> None:
        now = time.monotonic()
        self._seconds[name], self._at = now - self._at, now
