"""The parts of a step on a line of time, bounded in number, as an event for the page of the run."""

import threading
from collections.abc import Callable, Iterable, Iterator, Sequence
from itertools import groupby
from math import ceil
from typing import NamedTuple

from trainer.contracts import SpansData, StepSpan

MOST_WORK, MOST_PHASES, MOST_PIECES, MOST_BESIDE = 40, 80, 160, 120
"""The number of spans of one step: kinds of work, phases, reports of progress, and what ran at the same time."""
LONGEST = 200
"""Characters of a name, as the event allows. A longer name must not end a run."""
HELD = 1000
"""The number of pieces that are held while a step lasts. If there are more, neighbours become one."""


class TimePiece(NamedTuple):
    """A stretch of time by the process's monotonic clock. `pieces`: how many pieces have become this one."""

    work: str
    name: str
    start: float
    end: float
    done: int = -1
    pieces: int = 1


Source = Callable[[], Iterable[TimePiece]]
"""Gives what ran since the last call."""


class BesideLog:
    """The record of work that is done at the same time as the step's own work. Any thread adds to it."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._pieces: list[TimePiece] = []

    def ran(self, work: str, name: str, start: float, end: float) -> None:
        with self._lock:
            self._pieces.append(TimePiece(work, name, start, end))
            if len(self._pieces) > 2 * HELD:
                self._pieces = list(_by_name(self._pieces, HELD))

    def taken(self) -> list[TimePiece]:
        with self._lock:
            found, self._pieces = self._pieces, []
        return found


def bounded(pieces: Sequence[TimePiece], most: int) -> list[TimePiece]:
    """Merges into at most `most` pieces: neighbours become one, which has the work and the name on which they spent most time."""
    size = ceil(len(pieces) / most) if pieces else 1
    return [_one(pieces[i : i + size]) for i in range(0, len(pieces), size)] if size > 1 else list(pieces)


def spans_data(pieces: Sequence[TimePiece], beside: Iterable[TimePiece]) -> SpansData:
    """The event of a step. Its own `pieces` follow one another without a gap; `beside` is cut at the ends of the step."""
    began, ended = pieces[0].start, pieces[-1].end
    lines = _Lines(began)
    works = bounded(list(_together(pieces, lambda piece: piece.work)), MOST_WORK)
    phases = [list(_phases(pieces, work, MOST_PHASES // len(works) or 1)) for work in works]
    each = MOST_PIECES // max(sum(map(len, phases)), 1) or 1
    for work, inner in zip(works, phases, strict=True):
        place = lines.add(work._replace(name=""), -1)
        for phase in inner:
            held = lines.add(phase, place)
            found = bounded([piece for piece in _inside(pieces, phase) if piece.name], each)
            if len(found) > 1:
                for piece in found:
                    lines.add(piece, held)
    cut = [each._replace(start=max(each.start, began), end=min(each.end, ended)) for each in beside]
    others = _Lines(began, lines.names)
    for piece in sorted(_by_name([each for each in cut if each.start < each.end], MOST_BESIDE), key=_start):
        others.add(piece, -1)
    return SpansData(
        took=lines.at(ended), names=tuple(lines.names), spans=tuple(lines.spans), beside=tuple(others.spans)
    )


class _Lines:
    """Spans in microseconds since the step began. Ends are rounded, not lengths, so what is nested stays nested."""

    def __init__(self, began: float, names: dict[str, int] | None = None) -> None:
        self._began = began
        self.names: dict[str, int] = {} if names is None else names
        self.spans: list[StepSpan] = []

    def at(self, moment: float) -> int:
        return round((moment - self._began) * 1e6)

    def add(self, piece: TimePiece, inside: int) -> int:
        work, name = (self.names.setdefault(text[:LONGEST], len(self.names)) for text in (piece.work, piece.name))
        start = self.at(piece.start)
        self.spans.append(StepSpan(work, name, inside, start, self.at(piece.end) - start, piece.pieces))
        return len(self.spans) - 1


def _one(pieces: Sequence[TimePiece]) -> TimePiece:
    seconds: dict[tuple[str, str], float] = {}
    for piece in pieces:
        key = piece.work, piece.name
        seconds[key] = seconds.get(key, 0.0) + piece.end - piece.start
    work, name = max(seconds, key=lambda key: seconds[key])
    start, end = min(piece.start for piece in pieces), max(piece.end for piece in pieces)
    return TimePiece(work, name, start, end, pieces[-1].done, sum(piece.pieces for piece in pieces))


def _together(pieces: Iterable[TimePiece], key: Callable[[TimePiece], str]) -> Iterator[TimePiece]:
    """Neighbours with the same key as one piece, which counts as one."""
    for _, found in groupby(pieces, key):
        yield _one(list(found))._replace(pieces=1)


def _inside(pieces: Iterable[TimePiece], around: TimePiece) -> list[TimePiece]:
    return [piece for piece in pieces if around.start <= piece.start and piece.end <= around.end]


def _phases(pieces: Iterable[TimePiece], work: TimePiece, most: int) -> Iterator[TimePiece]:
    named = [piece for piece in _together(_inside(pieces, work), lambda piece: piece.name) if piece.name]
    yield from bounded(named, most)


def _by_name(pieces: Sequence[TimePiece], most: int) -> Iterator[TimePiece]:
    """Yields at most `most` pieces. If there are few names, each keeps its own."""
    groups: dict[tuple[str, str], list[TimePiece]] = {}
    for piece in sorted(pieces, key=_start):
        groups.setdefault((piece.work, piece.name), []).append(piece)
    if len(groups) > most // 4:
        yield from bounded(sorted(pieces, key=_start), most)
        return
    for found in groups.values():
        yield from bounded(found, most // len(groups))


def _start(piece: TimePiece) -> float:
    return piece.start
