"""Parallel coordinates of a sweep: a vertical line for each key and one for the metric, a line across for each trial."""

import math
from collections.abc import Sequence
from dataclasses import dataclass

from . import keys, space
from .reading import SweepStanding, TrialRow
from .space import SweepAxis

WIDTH, TOP, BOTTOM, SIDE = 960, 36, 236, 80
BEST = 3  # lines that stand out


@dataclass(frozen=True)
class UprightTick:
    """`y` is the line on which the words stand. No line of a trial passes above the top or below the bottom, so the words of the ends stand
    there; the others stand beside their place."""

    x: float
    y: float
    words: str
    anchor: str


@dataclass(frozen=True)
class Upright:
    """`ticks`: from the top."""

    x: float
    title: str
    ticks: list[UprightTick]


@dataclass(frozen=True)
class Across:
    points: str
    title: str
    rank: int  # from 1

    @property
    def stands_out(self) -> bool:
        return self.rank <= BEST


@dataclass(frozen=True)
class ParallelPicture:
    """A picture of the trials with a value for every seed; the best come last, so that they lie on top. `left_out`: the others."""

    uprights: list[Upright]
    lines: list[Across]
    left_out: int
    width: int = WIDTH
    top: int = TOP
    bottom: int = BOTTOM


def parallel(standing: SweepStanding, metric: str) -> ParallelPicture | None:
    """The picture; None if fewer than two trials have a value for every seed."""
    whole = [row for row in standing.ranked if row.complete]
    if len(whole) < 2:
        return None
    count = len(standing.axes)
    xs = [SIDE + i * (WIDTH - 2 * SIDE) / count for i in range(count + 1)]
    means = [row.estimate.value or 0.0 for row in whole]
    low, high = min(means), max(means)
    uprights = [Upright(x, axis.path, _ticks(x, axis)) for x, axis in zip(xs, standing.axes, strict=False)]
    ends = [(float(TOP), f"{high:.3g}"), (float(BOTTOM), f"{low:.3g}")] if high > low else [(_up(0.5), f"{low:.3g}")]
    uprights.append(Upright(xs[-1], metric, [_tick(xs[-1], y, words) for y, words in ends]))
    lines = [
        _line(rank, row, standing.axes, xs, _up((mean - low) / (high - low) if high > low else 0.5))
        for rank, (row, mean) in enumerate(zip(whole, means, strict=True), 1)
    ]
    return ParallelPicture(uprights, lines[::-1], len(standing.rows) - len(whole))


def _line(rank: int, row: TrialRow, axes: Sequence[SweepAxis], xs: Sequence[float], end: float) -> Across:
    heights = [_height(axis, row.trial.values[axis.path]) for axis in axes] + [end]
    words = ", ".join(f"{axis.path} {value}" for axis, value in zip(axes, row.values, strict=True))
    points = " ".join(f"{x:.1f},{y:.1f}" for x, y in zip(xs, heights, strict=True))
    return Across(points, f"Trial {row.trial.number}: {row.estimate.value:.3g} with {words}", rank)


def _up(share: float) -> float:
    return BOTTOM - share * (BOTTOM - TOP)


def _height(axis: SweepAxis, value: space.Value) -> float:
    if not axis.is_range:
        place = axis.values.index(value)
        return _up(place / (len(axis.values) - 1) if len(axis.values) > 1 else 0.5)
    low, high, number = float(axis.low or 0), float(axis.high or 0), float(value or 0)
    if axis.scale == "log":
        low, high, number = (math.log(each) for each in (low, high, number))
    return _up((number - low) / (high - low))


def _ticks(x: float, axis: SweepAxis) -> list[UprightTick]:
    shown = [axis.at(1.0), axis.at(0.0)] if axis.is_range else axis.values[::-1]
    return [_tick(x, _height(axis, value), keys.value_text(value)) for value in shown]


def _tick(x: float, y: float, words: str) -> UprightTick:
    if y <= TOP:
        return UprightTick(x, y - 5, words, "middle")
    if y >= BOTTOM:
        return UprightTick(x, y + 15, words, "middle")
    return UprightTick(x + 8, y + 4, words, "start")
