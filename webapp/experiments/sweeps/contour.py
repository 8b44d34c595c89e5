"""The metric of a sweep over two of its keys: the places that were tried, and interpolated values between them."""

import math
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import scipy

from . import space
from .space import SweepAxis

LEAST = 4  # trials with a value for every seed, below which no surface is drawn
ACROSS, UP = 48, 32  # cells of the surface
DECADE = 10  # a list of numbers above 0 is drawn by factors if its ends are this many times apart
Trials = Sequence[tuple[int, space.Values, float]]


@dataclass(frozen=True)
class ContourSide:
    """One of the two keys. `log`: equal factors are equally far apart."""

    path: str
    low: float
    high: float
    log: bool
    named: tuple[float, ...] = ()  # the values of a list

    def share(self, number: float) -> float:
        """The position of a value between `low` and `high`, from 0 to 1."""
        low, high, here = (math.log(each) if self.log else each for each in (self.low, self.high, number))
        return (here - low) / (high - low)

    def at(self, share: float) -> float:
        if self.log:
            return math.exp(math.log(self.low) + share * (math.log(self.high) - math.log(self.low)))
        return self.low + share * (self.high - self.low)


@dataclass(frozen=True)
class ContourPlace:
    """Two values that were tried together, and the mean over the trials that tried them."""

    x: float
    y: float
    value: float
    trials: tuple[int, ...]


@dataclass(frozen=True)
class Contour:
    """`surface`: rows of cells from the lowest `y` up, each the linear interpolation in its middle, by the triangles between the places
    (Delaunay), and None outside of all triangles. It is empty if `undefined` says why."""

    x: ContourSide
    y: ContourSide
    places: list[ContourPlace]
    surface: list[list[float | None]]
    undefined: str = ""


def numeric_axes(axes: Sequence[SweepAxis]) -> dict[str, ContourSide]:
    """The keys that have more than one value, all of them numbers, in the order of the sweep."""
    return {axis.path: side for axis in axes if (side := _side(axis)) is not None}


def _side(axis: SweepAxis) -> ContourSide | None:
    if axis.low is not None and axis.high is not None:
        return ContourSide(axis.path, axis.low, axis.high, axis.scale == "log") if axis.low < axis.high else None
    numbers = [float(each) for each in axis.values if isinstance(each, int | float) and not isinstance(each, bool)]
    if len(numbers) < len(axis.values) or len(set(numbers)) < 2:
        return None
    low, high = min(numbers), max(numbers)
    return ContourSide(axis.path, low, high, low > 0 and high >= DECADE * low, tuple(sorted(set(numbers))))


def make_contour(x: ContourSide, y: ContourSide, trials: Trials) -> Contour:
    """`trials`: number, values and mean of each that has a value for every seed."""
    places = _places(x, y, trials)
    if len(trials) < LEAST:
        there = "is 1" if len(trials) == 1 else f"are {len(trials)}"
        reason = f"A surface needs {LEAST} trials with a value for every seed; there {there}."
        return Contour(x, y, places, [], reason)
    surface = _surface(x, y, places)
    reason = "" if surface else "All places that were tried lie on one line, so nothing lies between them."
    return Contour(x, y, places, surface, reason)


def _places(x: ContourSide, y: ContourSide, trials: Trials) -> list[ContourPlace]:
    found: dict[tuple[float, float], list[tuple[int, float]]] = {}
    for number, values, mean in trials:
        at = (float(values[x.path] or 0), float(values[y.path] or 0))
        found.setdefault(at, []).append((number, mean))
    return [
        ContourPlace(*at, sum(mean for _, mean in tried) / len(tried), tuple(number for number, _ in tried))
        for at, tried in sorted(found.items())
    ]


def _surface(x: ContourSide, y: ContourSide, places: Sequence[ContourPlace]) -> list[list[float | None]]:
    points = np.array([(x.share(each.x), y.share(each.y)) for each in places])
    across, up = ((np.arange(cells) + 0.5) / cells for cells in (ACROSS, UP))
    try:
        found = scipy.interpolate.griddata(
            points, [each.value for each in places], tuple(np.meshgrid(across, up)), method="linear"
        )
    except scipy.spatial.QhullError:  # no triangle has an area
        return []
    return [[None if math.isnan(value) else float(value) for value in row] for row in found]
