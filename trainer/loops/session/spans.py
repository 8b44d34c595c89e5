"""Divides the time of a step among the kinds of work that it contained."""

import time
from collections.abc import Iterable
from typing import Literal

from trainer.contracts import SpansData

from .timeline import HELD, BesideLog, Source, TimePiece, bounded, spans_data

Work = Literal["rollout", "reward", "learner", "evaluation"]
"""Sampling; waiting for rewards; everything that measures or updates weights; measuring on held-out data."""


class Spans:
    """Divides the time of one step among the kinds of work. A report of progress says what the time since the report before it was spent
    on; what follows the last report belongs to the same work as that report.
    """

    def __init__(self) -> None:
        self._seconds: dict[str, float] = {}
        self._last, self._work = time.monotonic(), ""
        self._pieces: list[TimePiece] = []
        self._beside = BesideLog()
        self._sources: list[Source] = [self._beside.taken]
        self.ran = self._beside.ran

    def reported(self, work: Work, phase: str = "", done: int = -1) -> None:
        """Progress of `work` was reported now. `phase` is what it does, `done` how much of this is done."""
        self._spent(work, time.monotonic(), phase, done)
        self._work = work

    def over(self, name: str) -> None:
        """Something has ended: a step, an evaluation, a checkpoint. If it reported nothing, all its time was spent on `name`."""
        self._spent(self._work or name, time.monotonic())
        self._work = ""

    def beside(self, source: Source) -> None:
        """Asks `source` at the end of the step for what ran at the same time."""
        self._sources.append(source)

    def evaluated(self, during: "Spans") -> None:
        """Takes over what an evaluation of this step has noted."""
        for piece in during._pieces:
            self._spent("evaluation", piece.end, piece.name, piece.done)
        self._sources += during._sources

    def metrics(self) -> dict[str, float]:
        """Seconds by `perf/<work>_s`. Work that took no time is left out."""
        return {f"perf/{work}_s": seconds for work, seconds in self._seconds.items()}

    def told(self) -> SpansData:
        """The parts of the step so far, for its page."""
        beside: Iterable[TimePiece] = [piece for source in self._sources for piece in source()]
        return spans_data(self._pieces, beside)

    def _spent(self, name: str, now: float, phase: str = "", done: int = -1) -> None:
        self._seconds[name] = self._seconds.get(name, 0.0) + now - self._last
        piece = TimePiece(name, phase, self._last, now, done)
        last = self._pieces[-1] if self._pieces else None
        if last and (last.work, last.name, last.done) == (name, phase, done):  # it only waits
            self._pieces[-1] = last._replace(end=now)
        else:
            self._pieces.append(piece)
        if len(self._pieces) > 2 * HELD:
            self._pieces = bounded(self._pieces, HELD)
        self._last = now
