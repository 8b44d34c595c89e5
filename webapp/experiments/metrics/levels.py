"""Points of a metric, condensed: of every stretch of this many neighbours the lowest and the highest, so that no spike is lost.

Level 0 takes `UNIT` points together, each further level `FANOUT` times as many. A row holds `UNITS` units of one level, and the first
and the last point of its stretch. Beside it are the means of its units, for curves that are means of ranges of steps. Stretches are counted in points, not in steps, so steps may lie as far apart as they like.
Pure functions of arrays; ties go to the earlier step.
"""

from collections.abc import Sequence
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

POINT = np.dtype(
    [("step", "<i4"), ("value", "<f8"), ("at", "<i8")]
)  # `at`: microseconds since 2000, as Postgres has them
MEAN = np.dtype([("first", "<i4"), ("last", "<i4"), ("value", "<f8"), ("at", "<f8")])
"""A unit: its first and last step, and the means of its values and of its times."""
UNIT = 16
FANOUT = 4
UNITS = 16  # of a row
HIGHEST = 9  # level; 268 million points a row
ROW = UNIT * UNITS  # points of a row of level 0
EPOCH_S = 946_684_800  # 2000-01-01

Points = NDArray[Any]
"""An array of `POINT`, by step; no step twice."""


def rows(points: Points) -> list[bytes]:
    """Rows of level 0 for as many of the points as fill whole rows."""
    whole = points[: len(points) // ROW * ROW].reshape(-1, UNITS, UNIT)
    lows, highs = (_taken(whole, by(whole["value"], axis=2)) for by in (np.argmin, np.argmax))
    return [_row(each[0, 0], each[-1, -1], low, high) for each, low, high in zip(whole, lows, highs, strict=True)]


class LevelRow(NamedTuple):
    """A row as it is stored."""

    points: bytes
    means: bytes


def whole_rows(points: Points) -> list[LevelRow]:
    """Rows of level 0 for as many of the points as fill whole rows."""
    return list(map(LevelRow, rows(points), means(points)))


def merged_rows(four: Sequence[LevelRow]) -> LevelRow:
    """The row of the next level for `FANOUT` rows that follow one another."""
    return LevelRow(merged([row.points for row in four]), merged_means([row.means for row in four]))


def means(points: Points) -> list[bytes]:
    """Beside each of `rows`: the means of its units."""
    whole = points[: len(points) // ROW * ROW].reshape(-1, UNITS, UNIT)
    made = np.empty(whole.shape[:2], MEAN)
    made["first"], made["last"] = whole["step"][..., 0], whole["step"][..., -1]
    for name in ("value", "at"):
        made[name] = (whole[name] / UNIT).sum(axis=2)  # divided first: a sum of large values may be no number
    return [row.tobytes() for row in made]


def merged_means(four: list[bytes]) -> bytes:
    """Beside a row of the next level: the means of its units, of those of `FANOUT` rows that follow one another."""
    held = np.concatenate([opened_means(row) for row in four]).reshape(UNITS, FANOUT)
    made = np.empty(UNITS, MEAN)
    made["first"], made["last"] = held["first"][:, 0], held["last"][:, -1]
    for name in ("value", "at"):
        made[name] = (held[name] / FANOUT).sum(axis=1)
    return made.tobytes()


def opened_means(row: bytes) -> Points:
    held: Points = np.frombuffer(row, MEAN)
    return held


def merged(four: list[bytes]) -> bytes:
    """The row of the next level for `FANOUT` rows that follow one another."""
    held = [np.frombuffer(row, POINT) for row in four]
    lows = np.concatenate([each[2::2] for each in held]).reshape(UNITS, FANOUT)
    highs = np.concatenate([each[3::2] for each in held]).reshape(UNITS, FANOUT)
    low, high = _taken(lows, lows["value"].argmin(axis=1)), _taken(highs, highs["value"].argmax(axis=1))
    return _row(held[0][0], held[-1][1], low, high)


def last_step(row: bytes) -> int:
    return int(np.frombuffer(row, POINT, count=2)["step"][1])


def opened(row: bytes) -> Points:
    """The points that it kept, in the order of steps."""
    held = np.frombuffer(row, POINT)
    _, places = np.unique(held["step"], return_index=True)
    return held[places]


def thinned(points: Points, buckets: int) -> Points:
    """The lowest and the highest point of every bucket of steps, and always the first and the last point."""
    low, high = int(points["step"][0]), int(points["step"][-1])
    bucket = (points["step"].astype(np.int64) - low) * buckets // (high - low + 1)
    starts = np.flatnonzero(np.diff(bucket, prepend=-1))
    sizes = np.diff(starts, append=len(points))
    kept = np.zeros(len(points), bool)
    for extreme in (np.minimum, np.maximum):
        found = np.flatnonzero(points["value"] == np.repeat(extreme.reduceat(points["value"], starts), sizes))
        kept[found[np.flatnonzero(np.diff(bucket[found], prepend=-1))]] = True
    kept[[0, -1]] = True
    thin: Points = points[kept]
    return thin


def _taken(points: Points, places: NDArray[np.intp]) -> Points:
    taken: Points = np.take_along_axis(points, places[..., None], axis=-1)[..., 0]
    return taken


def _row(first: Any, last: Any, lows: Points, highs: Points) -> bytes:
    made = np.empty(2 + 2 * UNITS, POINT)
    made[0], made[1], made[2::2], made[3::2] = first, last, lows, highs
    return made.tobytes()
