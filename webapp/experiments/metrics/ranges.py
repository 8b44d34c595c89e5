"""The means of one metric of many runs in ranges of steps, which are the same for all runs.

Long runs are read from their levels: a unit that lies in one range counts with its mean. A unit that lies in two ranges is read from lower
levels. The database adds up the last few points at a border, and all points behind the levels. So the result is that of all points, and
memory depends on the numbers of runs and ranges alone.
"""

from collections.abc import Collection, Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Any

import numpy as np
from numpy.typing import NDArray

from webapp.core.database import snapshots
from webapp.core.tasks import enqueue
from webapp.datasets.encoding.copy_format import EPOCH, moment

from . import condensing, levels, points, stored_levels

UNITS = 4
"""Units of the highest level that is read in each range of a run, on average; so most of them lie in one range."""
DOWN = 2
"""A unit is a row of the level so far below it."""
LONG = condensing.POINTS_AT_ONCE
"""Points behind the levels of a run. If a run has so many, its task was lost, or nobody has asked for one."""
ASKED = 50
"""An answer asks to condense so many runs, and the next answer asks for others."""


@dataclass(frozen=True)
class RangeMeans:
    """Means of runs (`run`: places) in ranges (`place`) in which they have points: the `value` and the time (`at`, seconds since the run's
    first point). The ranges begin at the step `low` and divide `span` steps."""

    low: int
    span: int
    run: NDArray[np.int64]
    place: NDArray[np.int64]
    value: NDArray[np.float64]
    at: NDArray[np.float64]


@snapshots.one_moment()
def means(run_ids: Sequence[int], key: str, most: int) -> RangeMeans:
    """At most so many ranges; each is one step if there are no more steps. Five to ten statements, for any number of runs and points, of which
    none sees points or levels that were written or deleted after the first."""
    ends = points.ends(run_ids, key)
    low = min((first for first, _ in ends.values()), default=0)
    high = max((last for _, last in ends.values()), default=0)
    places = [place for place, run_id in enumerate(run_ids) if run_id in ends]
    held = [run_ids[place] for place in places]
    began = points.times({run_id: (key, ends[run_id][0]) for run_id in held})
    sums = _Sums(points.StepRanges(low, high - low + 1, most))
    _read(sums, held, key, [ends[run_id] for run_id in held], min(began.values(), default=EPOCH))
    firsts = np.array([moment(began[run_id]) if run_id in began else np.inf for run_id in held], np.float64)
    return sums.means(np.array(places, np.int64), firsts)


def _read(sums: "_Sums", run_ids: Sequence[int], key: str, ends: Sequence[tuple[int, int]], since: datetime) -> None:
    reach = stored_levels.covered_each(run_ids, [key] * len(run_ids))
    units, single = _wanted(sums, reach, ends)
    old: set[int] = set()
    found = stored_levels.means(run_ids, key, units)
    while found:
        old.update(place for place, _, means in found if means is None)
        runs, level, means = map(list, zip(*found, strict=True))
        crossing = sums.add_rows(runs, level, [each or bytes(levels.UNITS * levels.MEAN.itemsize) for each in means])
        single += [(run, first - 1, last) for run, level, first, last in crossing if level < DOWN]
        below = [(run, level - DOWN, last - 1, last) for run, level, _, last in crossing if level >= DOWN]
        found = stored_levels.means(run_ids, key, below)
    sums.forget(old)
    single = [each for each in single if each[0] not in old]
    # the points behind the levels of each run come first
    wanted = [
        (place, first - 1 if place in old else covered.steps.get(0, first - 1), last)
        for place, (covered, (first, last)) in enumerate(zip(reach, ends, strict=True))
    ] + single
    told = points.in_ranges(key, [(run_ids[place], after, until) for place, after, until in wanted], sums.steps, since)
    sums.add_points(np.array([place for place, _, _ in wanted], np.int64)[told.wanted], told)
    behind = np.bincount(told.wanted, told.points, len(run_ids))[: len(run_ids)]
    _ask_to_condense(run_ids, old, behind)


def _ask_to_condense(run_ids: Sequence[int], old: Collection[int], behind: NDArray[Any]) -> None:
    """`old`: the places of runs whose levels have no means. `behind`: the numbers of points behind the levels of all runs."""
    waiting = [place for place in np.argsort(-behind).tolist() if place in old or behind[place] >= LONG]
    for place in waiting[:ASKED]:
        enqueue(condensing.TASK, run_ids[place])


def _wanted(
    sums: "_Sums", reach: Sequence[stored_levels.Covered], ends: Sequence[tuple[int, int]]
) -> tuple[list[tuple[int, int, int, int]], list[tuple[int, int, int]]]:
    """The reads of each run: the levels from the highest that has units enough in each range; if none has, the points that they cover."""
    units, single = [], []
    for place, (covered, (first, last)) in enumerate(zip(reach, ends, strict=True)):
        highest = _highest(covered, sums.touched(first, last))
        if highest < 0 and covered.rows:
            single.append((place, first - 1, covered.steps[0]))
        for level in range(highest + 1):
            after = -1 if level == highest else covered.beyond(level)
            units.append((place, level, after, covered.steps[level]))
    return units, single


def _highest(covered: stored_levels.Covered, ranges: int) -> int:
    """-1: all points are read."""
    enough = [level for level, rows in covered.rows.items() if rows * levels.UNITS >= UNITS * ranges]
    return max(enough, default=-1)


class _Sums:
    """Sums of all that was read of each run in each range."""

    def __init__(self, steps: points.StepRanges) -> None:
        self.steps = steps
        self._parts: list[tuple[NDArray[Any], ...]] = []  # runs, ranges, numbers of points, values, times

    def touched(self, first: int, last: int) -> int:
        """The number of ranges that these steps touch."""
        begin, end = self.steps.of(np.array([first, last], np.int64)).tolist()
        return int(end - begin + 1)

    def add_points(self, runs: NDArray[np.int64], found: points.PointsInRanges) -> None:
        self._parts.append((runs, found.place, found.points.astype(np.float64), found.value, found.at))

    def add_rows(
        self, runs: Sequence[int], level: Sequence[int], means: Sequence[bytes]
    ) -> list[tuple[int, int, int, int]]:
        """Adds the units that lie in one range, of rows. Returns of the others the run, the level, and the first and the last step."""
        units = levels.opened_means(b"".join(means))
        of, at = (np.repeat(np.array(each, np.int64), levels.UNITS) for each in (runs, level))
        begin, end = self.steps.of(units["first"]), self.steps.of(units["last"])
        kept = begin == end
        size = levels.UNIT * np.float64(levels.FANOUT) ** at
        self._parts.append((of[kept], begin[kept], size[kept], units["value"][kept], units["at"][kept]))
        others = (of, at, units["first"], units["last"])
        return list(zip(*(each[~kept].tolist() for each in others), strict=True))

    def forget(self, runs: Collection[int]) -> None:
        kept = [~np.isin(part[0], list(runs)) for part in self._parts]
        self._parts = [tuple(each[mask] for each in part) for part, mask in zip(self._parts, kept, strict=True)]

    def means(self, places: NDArray[np.int64], firsts: NDArray[np.float64]) -> RangeMeans:
        """`places`: of the runs whose numbers were added. `firsts`: the times of their first points."""
        empty = (np.empty(0, np.int64),) * 2 + (np.empty(0),) * 3
        run, place, size, value, at = (np.concatenate(each) for each in zip(empty, *self._parts, strict=True))
        number = self.steps.number
        keys, which = np.unique(run * number + place, return_inverse=True)
        of, ranges = keys // number, keys % number
        # divided first: a sum of large values may be no number
        share = size / np.bincount(which, size, len(keys))[which]
        starts = firsts.copy()
        first = np.r_[True, of[1:] != of[:-1]][which] if len(keys) else np.empty(0, bool)
        np.minimum.at(starts, run[first], at[first])
        values, seconds = (
            np.bincount(which, each * share, len(keys)).astype(np.float64, copy=False)
            for each in (value, (at - starts[run]) / 1e6)
        )
        return RangeMeans(self.steps.low, self.steps.span, places[of], ranges, values, seconds)
