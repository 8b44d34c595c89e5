"""Every read of stored points. Only this module and `writing` know how points lie in the database; a test checks that.

The database computes sums over many points, or the points come as arrays; pages of points come as rows.
"""

import json
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from itertools import pairwise
from typing import Any

import numpy as np
from django.db import connection
from django.db.models import F, FloatField, Func, Value
from numpy.typing import NDArray

from webapp.core.database import binary_rows

from . import levels, sql
from .models import Point

COPIED = binary_rows.row_of([("place", ">i4"), ("step", ">i4"), ("value", ">f8"), ("at", ">i8")])
BLOCK = binary_rows.BLOCK
LONG_STEPS = 300  # from the first to the last step of a run of which single points are read


@dataclass(frozen=True)
class LoggedPoint:
    """A value of one metric; it may be NaN or infinite."""

    key: str
    step: int
    time: datetime
    value: float


@dataclass(frozen=True)
class NewestPoint:
    """The point of the last step of a key. `value` is None if there is only a histogram."""

    key: str
    step: int
    time: datetime
    value: float | None
    has_histogram: bool

    @property
    def is_number(self) -> bool:
        """False if there is only a histogram. The number may be NaN or infinite."""
        return self.value is not None or not self.has_histogram


@dataclass(frozen=True)
class PointSummary:
    """The last, the lowest and the highest value of a key, and its last step."""

    key: str
    last: float
    low: float
    high: float
    last_step: int


def newest(run_ids: Collection[int]) -> dict[int, list[NewestPoint]]:
    """Run id -> the newest point of each of its keys, by key. One statement for any number of runs and points."""
    found: dict[int, list[NewestPoint]] = {run_id: [] for run_id in run_ids}
    if found:
        for run_id, key, step, time, value, not_finite, has_histogram in _rows(sql.NEWEST, runs=list(found)):
            told = float(not_finite) if not_finite else value
            found[run_id].append(NewestPoint(key, step, time, told, has_histogram))
    return found


class LastValue(Func):
    """The finite value of the newest point of a key, as a part of a query over rows that have a run."""

    output_field = FloatField(null=True)

    def __init__(self, run: str, key: str) -> None:
        super().__init__(F(run), Value(key))

    def as_sql(self, compiler: Any, connection: Any, *_: Any, **__: Any) -> tuple[str, Any]:
        (run, of_run), (key, of_key) = (compiler.compile(each) for each in self.get_source_expressions())
        return sql.LAST_VALUE.format(run=run, key=key), [*of_run, *of_key] * 2


def read_points(
    run_id: int, keys: Sequence[str], after: Sequence[int], most: int | None = None
) -> Iterator[tuple[int, levels.Points]]:
    """(place of a key, its finite values after the step `after`, at most `most`), in consecutive pieces."""
    given: dict[str, Any] = {
        "run": run_id,
        "places": list(range(len(keys))),
        "keys": list(keys),
        "after": list(after),
        "most": most,
    }
    for found in binary_rows.blocks(sql.COPIED, given, COPIED):
        yield from _pieces(found)


@dataclass(frozen=True)
class StepRanges:
    """The steps from `low` on, `span` of them, in at most `most` ranges of equal length; each is one step if there are no more steps."""

    low: int
    span: int
    most: int

    @property
    def number(self) -> int:
        return min(self.span, self.most)

    def of(self, steps: NDArray[Any]) -> NDArray[np.int64]:
        """The ranges in which the steps lie."""
        return (steps.astype(np.int64) - self.low) * self.number // self.span


@dataclass(frozen=True, eq=False)
class PointsInRanges:
    """Points, taken together: of `wanted` (a place) in the range `place` so many `points`, and the means of their values and of their times
    (`at`, microseconds since 2000)."""

    wanted: NDArray[np.int64]
    place: NDArray[np.int64]
    points: NDArray[np.int64]
    value: NDArray[np.float64]
    at: NDArray[np.float64]


def in_ranges(key: str, wanted: Sequence[tuple[int, int, int]], ranges: StepRanges, since: datetime) -> PointsInRanges:
    """For each (run id, step, step) wanted the finite values of a metric behind the first step and not behind the second. All these steps lie in
    the ranges. The database adds the points up, because there may be many. `since`: a time near the points; sums of seconds since then are more
    exact than sums of larger numbers."""
    runs, after, until = map(list, zip(*wanted, strict=True)) if wanted else ([], [], [])
    began = int(since.timestamp())
    steps = {"low": ranges.low, "parts": ranges.number, "span": ranges.span}
    [(packed,)] = _rows(sql.RANGES, runs=runs, after=after, until=until, key=key, since=began, **steps)
    number, place, points, total, large, seconds = binary_rows.opened(packed, sql.RANGES_CELLS)
    value = total / points + large / points * sql.LARGE
    at = np.rint(seconds / points * 1e6) + (began - levels.EPOCH_S) * 1e6
    return PointsInRanges(number - 1, place, points, value, at)


def _points(found: NDArray[Any]) -> levels.Points:
    made = np.empty(len(found), levels.POINT)
    for name in ("step", "value", "at"):
        made[name] = found[name]
    return made


def _pieces(found: NDArray[Any]) -> Iterator[tuple[int, levels.Points]]:
    made = _points(found)
    starts = np.flatnonzero(np.diff(found["place"], prepend=-1)).tolist()
    for start, end in pairwise([*starts, len(found)]):
        yield int(found["place"][start]), made[start:end]


def page(run_id: int, key: str, after_step: int | None, limit: int) -> list[dict[str, Any]]:
    """Points by step, as the API returns them: `step`, `value`, `not_finite`, `time`, `histogram`."""
    found = _rows(sql.PAGE, run=run_id, key=key, after=_after(after_step), most=limit)
    return [
        {"step": step, "value": value, "not_finite": not_finite, "time": time, "histogram": _json(histogram)}
        for step, value, time, not_finite, histogram in found
    ]


def numbers(run_id: int, key: str, after_step: int | None, limit: int) -> list[LoggedPoint]:
    """Points by step, without those that have only a histogram."""
    found = _rows(sql.NUMBERS, run=run_id, key=key, after=_after(after_step), most=limit)
    return [
        LoggedPoint(key, step, time, float(not_finite) if value is None else value)
        for step, value, time, not_finite, _ in found
    ]


def _after(step: int | None) -> int:
    return -1 if step is None else step


def values(run_id: int, keys: Collection[str]) -> Iterator[tuple[str, int, float]]:
    """(key, step, finite value) of all points of the keys."""
    found = Point.objects.filter(run_id=run_id, key__in=keys, value__isnull=False)
    for key, step, value in found.values_list("key", "step", "value"):
        if value is not None:
            yield key, step, value


def first_values(run_ids: Iterable[int], key: str, step: int) -> list[float]:
    """The first finite value at `step` or later, for each run that has one."""
    return [value for (value,) in _rows(sql.FIRST_VALUES, runs=list(run_ids), key=key, after=step - 1)]


def times(places: Mapping[int, tuple[str, int]]) -> dict[int, datetime]:
    """For each run, the time of its point at (key, step). Runs without such a point are left out."""
    if not places:
        return {}
    keys, steps = zip(*places.values(), strict=True)
    return dict(_rows(sql.TIMES, runs=list(places), keys=list(keys), steps=list(steps)))


def highest(run_id: int, key: str, after_step: int) -> float | None:
    """The highest finite value after the step."""
    [(found,)] = _rows(sql.HIGHEST, run=run_id, key=key, after=after_step)
    return None if found is None else float(found)


def total(run_id: int, key: str) -> float:
    """The sum of the finite values over all steps; 0 if there are none."""
    [(found,)] = _rows(sql.TOTAL, run=run_id, key=key)
    return float(found)


def summaries(run_id: int, keys: Collection[str]) -> list[PointSummary]:
    """One for each of the keys that has a finite value."""
    return [PointSummary(*row) for row in _rows(sql.SUMMARIES, run=run_id, keys=list(keys))]


def sparks(keys: Mapping[int, str], most: int) -> dict[int, list[float]]:
    """Run id -> at most `most` + 1 finite values of its key in `keys`, by step, the newest always among them: every n-th, or of a long run
    those at evenly spaced steps."""
    found: dict[int, list[float]] = {}
    if keys:
        for run_id, value in _rows(sql.SPARKS, runs=list(keys), keys=list(keys.values()), most=most, many=LONG_STEPS):
            found.setdefault(run_id, []).append(value)
    return found


def ends(run_ids: Collection[int], key: str) -> dict[int, tuple[int, int]]:
    """The first and the last step with a finite value, for each run that has one."""
    return {run_id: (first, last) for run_id, first, last in _rows(sql.ENDS, runs=list(run_ids), key=key)}


def typical(workspace_id: int, key: str, newest_runs: int) -> list[tuple[str, float, int]]:
    """(recipe, typical value, runs) of each recipe with points of the key: the median of each of its newest runs, and of these medians
    again, so that one odd run does not set it."""
    return _rows(sql.TYPICAL, workspace=workspace_id, key=key, most=newest_runs)


def averages(run_id: int, keys: Sequence[str]) -> dict[str, float]:
    """Key -> the mean of all points of a run; a key without points is left out."""
    return dict(_rows(sql.AVERAGES, run=run_id, keys=list(keys)))


def histograms(run_id: int, key: str, most: int) -> list[tuple[int, Any]]:
    """(step, histogram) by step: at most `most`, evenly spread, the newest always among them."""
    return [(step, _json(found)) for step, found in _rows(sql.HISTOGRAMS, run=run_id, key=key, most=most)]


def _rows(statement: str, **given: Any) -> list[Any]:
    with connection.cursor() as cursor:
        cursor.execute(statement, given)
        found: list[Any] = cursor.fetchall()
    return found


def _json(value: Any) -> Any:
    """Raw cursors hand jsonb out as text, because Django turns off the driver's own decoding."""
    return json.loads(value) if isinstance(value, str) else value
