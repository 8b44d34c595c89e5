"""Every read of stored points. How they lie in the database is known here and in `writing`, and to nobody else: a test looks.

Sums over many points are computed by the database, or the points come as arrays; pages of points come as rows.
"""

from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from functools import reduce
from itertools import pairwise
from operator import or_
from typing import Any

import numpy as np
from django.db import connection
from django.db.models import FloatField, Max, Q, QuerySet, Subquery
from django.db.models.expressions import Combinable

from ..models import MetricPoint
from . import levels, sql

# a row of the binary form of COPY: how many cells, and each behind its length
COPIED = np.dtype(
    [("cells", ">i2"), ("_0", ">i4"), ("place", ">i4"), ("_1", ">i4"), ("step", ">i4")]
    + [("_2", ">i4"), ("value", ">f8"), ("_3", ">i4"), ("at", ">i8")]
)
HEADER = 19  # bytes before the first row
BLOCK = 65_536  # rows


@dataclass(frozen=True)
class LoggedPoint:
    """A value of one metric; it may be NaN or infinite."""

    key: str
    step: int
    time: datetime
    value: float


@dataclass(frozen=True)
class NewestPoint:
    """The point of the last step of a key. `value` is None where there is only a histogram."""

    key: str
    step: int
    time: datetime
    value: float | None
    has_histogram: bool


@dataclass(frozen=True)
class PointSummary:
    """What all numbers of a key come to."""

    key: str
    last: float
    low: float
    high: float
    last_step: int


def newest(run_ids: Collection[int]) -> dict[int, list[NewestPoint]]:
    """Run id -> the newest point of each of its keys, by key. One statement, however many runs and points."""
    found: dict[int, list[NewestPoint]] = {run_id: [] for run_id in run_ids}
    if found:
        for run_id, key, step, time, value, not_finite, has_histogram in _rows(sql.NEWEST, runs=list(found)):
            told = float(not_finite) if not_finite else value
            found[run_id].append(NewestPoint(key, step, time, told, has_histogram))
    return found


def last_value(run_id: Combinable, key: str) -> Combinable:
    """The finite value of the newest point, as a part of a query over rows that have a run."""
    return Subquery(
        MetricPoint.objects.filter(run_id=run_id, key=key).order_by("-step").values("value")[:1],
        output_field=FloatField(),
    )


def copied(
    run_id: int, keys: Sequence[str], after: Sequence[int], most: int | None = None
) -> Iterator[tuple[int, levels.Points]]:
    """(place of a key, its finite values behind the step `after`, at most `most`), in pieces that follow one another.

    As a binary copy: numbers that became objects of Python on their way would take several times as long.
    """
    given: dict[str, Any] = {
        "run": run_id,
        "places": list(range(len(keys))),
        "keys": list(keys),
        "after": list(after),
        "most": most,
    }
    statement = connection.ops.compose_sql(sql.COPIED, given)  # type: ignore[attr-defined]  # a COPY takes no values beside it
    held, skipped = bytearray(), False
    with (
        connection.cursor() as cursor,
        connection.wrap_database_errors,
        cursor.copy(statement) as blocks,
    ):
        for block in blocks:
            held += block
            if not skipped and len(held) >= HEADER:
                del held[:HEADER]
                skipped = True
            if len(held) >= BLOCK * COPIED.itemsize:
                yield from _pieces(held)
    yield from _pieces(held)


def _pieces(copied: bytearray) -> Iterator[tuple[int, levels.Points]]:
    """Takes the whole rows from the front."""
    whole = len(copied) // COPIED.itemsize
    found = np.frombuffer(bytes(copied[: whole * COPIED.itemsize]), COPIED)
    del copied[: whole * COPIED.itemsize]
    made = np.empty(whole, levels.POINT)
    for name in ("step", "value", "at"):
        made[name] = found[name]
    starts = np.flatnonzero(np.diff(found["place"], prepend=-1)).tolist()
    for start, end in pairwise([*starts, whole]):
        yield int(found["place"][start]), made[start:end]


def page(run_id: int, key: str, after_step: int | None, limit: int) -> list[dict[str, Any]]:
    """Points by step, as the API tells them: `step`, `value`, `not_finite`, `time`, `histogram`."""
    rows = _behind(run_id, key, after_step).values("step", "value", "not_finite", "time", "histogram")[:limit]
    return [dict(row) for row in rows]


def numbers(run_id: int, key: str, after_step: int | None, limit: int) -> list[LoggedPoint]:
    """Points by step, without those that have only a histogram."""
    rows = _behind(run_id, key, after_step).exclude(value=None, not_finite="")
    return [
        LoggedPoint(key, step, time, float(not_finite) if value is None else value)
        for step, time, value, not_finite in rows.values_list("step", "time", "value", "not_finite")[:limit]
    ]


def _behind(run_id: int, key: str, after_step: int | None) -> QuerySet[MetricPoint]:
    found = MetricPoint.objects.filter(run_id=run_id, key=key).order_by("step")
    return found if after_step is None else found.filter(step__gt=after_step)


def values(run_id: int, keys: Collection[str]) -> Iterator[tuple[str, int, float]]:
    """(key, step, finite value) of all points of the keys."""
    found = MetricPoint.objects.filter(run_id=run_id, key__in=keys, value__isnull=False)
    for key, step, value in found.values_list("key", "step", "value"):
        if value is not None:
            yield key, step, value


def first_values(run_ids: Iterable[int], key: str, step: int) -> list[float]:
    """The first finite value at `step` or behind it, for each run that has one."""
    found = MetricPoint.objects.filter(run__in=run_ids, key=key, step__gte=step, value__isnull=False)
    first = found.order_by("run_id", "step").distinct("run_id").values_list("value", flat=True)
    return [value for value in first if value is not None]


def times(places: Mapping[int, tuple[str, int]]) -> dict[int, datetime]:
    """When the point was made, by run, of (key, step) of each run; runs without such a point are left out."""
    if not places:
        return {}
    wanted = reduce(or_, (Q(run_id=run_id, key=key, step=step) for run_id, (key, step) in places.items()))
    return dict(MetricPoint.objects.filter(wanted).values_list("run_id", "time").order_by())


def highest(run_id: int, key: str, after_step: int) -> float | None:
    """The highest finite value behind the step."""
    behind = MetricPoint.objects.filter(run_id=run_id, key=key, step__gt=after_step)
    found: float | None = behind.aggregate(highest=Max("value"))["highest"]
    return found


def summaries(run_id: int, keys: Collection[str]) -> list[PointSummary]:
    """One for each of the keys that has a finite value."""
    return [PointSummary(*row) for row in _rows(sql.SUMMARIES, run=run_id, keys=list(keys))]


def sparks(keys: Mapping[int, str], most: int) -> dict[int, list[float]]:
    """Run id -> at most `most` + 1 finite values of its key in `keys`, by step: every n-th, the newest always among them."""
    found: dict[int, list[float]] = {}
    if keys:
        for run_id, value in _rows(sql.SPARKS, runs=list(keys), keys=list(keys.values()), most=most):
            found.setdefault(run_id, []).append(value)
    return found


def means(run_ids: Collection[int], key: str, stretches: int) -> list[tuple[int, int, float, float, float, int, int]]:
    """(run, stretch, mean of the values, first time, mean time, first step of all, steps of all) by run and stretch, of as many
    stretches of steps, the same for all runs. Times in seconds since 1970."""
    return _rows(sql.MEANS, runs=list(run_ids), key=key, points=stretches)


def typical(workspace_id: int, key: str, newest_runs: int) -> list[tuple[str, float, int]]:
    """(recipe, typical value, runs) of each recipe with points of the key: the median of each of its newest runs, and of these medians
    again, so that one odd run does not set it."""
    return _rows(sql.TYPICAL, workspace=workspace_id, key=key, most=newest_runs)


def histograms(run_id: int, key: str, most: int) -> list[tuple[int, Any]]:
    """(step, histogram as JSON) by step: at most `most`, evenly spread, the newest always among them."""
    return _rows(sql.HISTOGRAMS, run=run_id, key=key, most=most)


def _rows(statement: str, **given: Any) -> list[Any]:
    with connection.cursor() as cursor:
        cursor.execute(statement, given)
        found: list[Any] = cursor.fetchall()
    return found
