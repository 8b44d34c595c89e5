"""Narrowing and counting the examples of a version: packed columns for everything but words, one index for those."""

import json
from collections.abc import Iterator
from dataclasses import dataclass, replace
from typing import Any, cast

import numpy as np
from django.db import connection
from numpy.typing import NDArray

from . import packed, search
from .filters import RANGES, Filters, written
from .models import CurationJob, DatasetVersion

Positions = NDArray[np.int64]
FEW = 1_000  # hits that the index always fetches
PAGE = 51  # rows that a walk looks for
WALK = 1_000  # positions looked at first; each further step is twice as long
LONGEST_WALK = 16_000
BARS = 24


def positions(version: DatasetVersion, filters: Filters, after: int = -1, most: int = 51) -> list[int]:
    """The first `most` positions behind `after` that the filters leave, in the version's order."""
    size = version.counts.get("examples", 0)
    if not filters.narrow:
        return list(range(after + 1, min(after + 1 + most, size)))
    words = search.query(filters.text) if filters.text.strip() else None
    if words == "":
        return []
    left = _left(version, filters, after)
    if words is None:
        return [int(each) for each in left[:most]]
    rare = _rare(version, words)
    if rare is not None:
        return [int(each) for each in np.intersect1d(left, rare, assume_unique=True)[:most]]
    return _walked(version, words, left, most)


def _left(version: DatasetVersion, filters: Filters, after: int = -1) -> Positions:
    held = packed.columns(version)
    kept = packed.mask(held, filters)
    if kept is None:
        return np.arange(after + 1, held.size)
    return np.flatnonzero(kept[after + 1 :]) + after + 1


def _rare(version: DatasetVersion, words: str) -> Positions | None:
    """All positions whose examples hold the words, in order; None where they are too many to fetch."""
    most = rare(version)
    if _estimate(version, words) > 2 * most:
        return None
    with connection.cursor() as cursor:
        cursor.execute(
            "SELECT id FROM datasets_example WHERE dataset_id = %s AND search @@ %s::tsquery LIMIT %s",
            [version.dataset_id, words, most + 1],
        )
        ids = np.fromiter((row[0] for row in cursor.fetchall()), np.int64)
    return None if len(ids) > most else packed.columns(version).places(ids)


def rare(version: DatasetVersion) -> int:
    """Up to how many hits the index is quicker than walking: it visits every hit, a walk about a page's worth of rows
    over the share of hits; both are equal at the root of the product."""
    return max(FEW, int((PAGE * version.counts.get("examples", 0)) ** 0.5))


def _estimate(version: DatasetVersion, words: str) -> float:
    """How many examples the planner expects to hold the words: it knows which words are common, at no cost."""
    if version.counts.get("examples", 0) <= FEW:
        return 0
    with connection.cursor() as cursor:
        cursor.execute(
            "EXPLAIN (FORMAT JSON) SELECT 1 FROM datasets_example WHERE dataset_id = %s AND search @@ %s::tsquery",
            [version.dataset_id, words],
        )
        plan = cursor.fetchone()[0]
    rows: float = (json.loads(plan) if isinstance(plan, str) else plan)[0]["Plan"]["Plan Rows"]
    return rows


def _walked(version: DatasetVersion, words: str, left: Positions, most: int) -> list[int]:
    found: list[int] = []
    for hits in _walk(version, words, left):
        found += hits
        if len(found) >= most:
            break
    return found[:most]


def _walk(version: DatasetVersion, words: str, left: Positions) -> Iterator[list[int]]:
    start, step = 0, WALK
    while start < len(left):
        part = left[start : start + step]
        with connection.cursor() as cursor:
            cursor.execute(
                """
                SELECT member.position FROM datasets_versionmember AS member
                JOIN datasets_example AS example ON example.id = member.example_id
                WHERE member.version_id = %s AND member.position = ANY(%s) AND example.search @@ %s::tsquery
                ORDER BY member.position
                """,
                [version.pk, part.tolist(), words],
            )
            yield [row[0] for row in cursor.fetchall()]
        start, step = start + step, min(2 * step, LONGEST_WALK)


def all_positions(version: DatasetVersion, filters: Filters) -> Positions:
    """Every position that the filters leave; walks the whole version for common words, so not for a page."""
    if not filters.text.strip():
        return _left(version, filters)
    words = search.query(filters.text)
    if not words:
        return np.zeros(0, np.int64)
    left = _left(version, filters)
    rare = _rare(version, words)
    if rare is not None:
        return np.intersect1d(left, rare, assume_unique=True)
    return np.array([each for hits in _walk(version, words, left) for each in hits], np.int64)


def removed(version: DatasetVersion, filters: Filters, keep: bool, job: CurationJob | None) -> Positions:
    """The positions that go, in order: what `job` found, or what the filters do not leave (`keep` False: leave)."""
    if job:
        found = job.findings.filter(removes=True).values_list("position", flat=True)
        return np.unique(np.fromiter(found.iterator(), np.int64))
    left = all_positions(version, filters)
    if not keep:
        return left
    return np.setdiff1d(np.arange(version.counts.get("examples", 0)), left, assume_unique=True)


def count(version: DatasetVersion, filters: Filters, most: int = 1_000) -> tuple[int, bool]:
    """(how many examples the filters leave, whether that is all of them). Common words are counted up to `most`."""
    if not filters.text.strip():
        return len(_left(version, filters)), True
    words = search.query(filters.text)
    if not words:
        return 0, True
    left = _left(version, filters)
    rare = _rare(version, words)
    if rare is not None:
        return len(np.intersect1d(left, rare, assume_unique=True)), True
    found = len(_walked(version, words, left, most + 1))
    return min(found, most), found <= most


@dataclass(frozen=True)
class Bar:
    """`range` is the filter that a click on the bar sets; `count` of `all` examples in it are left by the filters."""

    range: str
    count: int
    all: int
    chosen: bool


@dataclass(frozen=True)
class Histogram:
    """One column. `missing` examples of those left have no value in it."""

    name: str
    label: str
    bars: list[Bar]
    missing: int
    log: bool


@dataclass(frozen=True)
class Histograms:
    """`words_counted` is False where the words are too common to be counted in: the bars show the other filters."""

    items: list[Histogram]
    words_counted: bool


SHOWN = ("length", "ratio", "criteria", "strength", "prompt_length", "agreement", "constraints", "pass_rate")


def histograms(version: DatasetVersion, filters: Filters) -> Histograms:
    """The columns that hold more than one value, each narrowed by all filters but its own, so that a chosen bar can
    be changed for its neighbour."""
    held = packed.columns(version)
    words = search.query(filters.text) if filters.text.strip() else None
    hits = None if words is None else _rare(version, words) if words else np.zeros(0, np.int64)
    made = []
    for name in SHOWN:
        kept = packed.mask(held, replace(filters, **cast(Any, {name: None})))
        if hits is not None:
            spoken = np.zeros(held.size, bool)
            spoken[hits] = True
            kept = spoken if kept is None else kept & spoken
        if drawn := _histogram(held, name, kept, getattr(filters, name)):
            made.append(drawn)
    return Histograms(made, words is None or hits is not None)


def _histogram(held: packed.Columns, name: str, kept: packed.Mask | None, chosen: Any) -> Histogram | None:
    column, label, whole = RANGES[name]
    values = held[column]
    known = values[~np.isnan(values)] if values.dtype.kind == "f" else values
    if not len(known) or known.min() == known.max():
        return None
    edges, log = _edges(name, float(known.min()), float(known.max()), whole)
    left = values if kept is None else values[kept]
    left_known = left[~np.isnan(left)] if left.dtype.kind == "f" else left
    everywhere, here = _binned(known, edges), _binned(left_known, edges)
    bars = []
    for index, (low, high) in enumerate(zip(edges[:-1], edges[1:], strict=True)):
        last = index == len(edges) - 2
        ends = (float(low), None if last else float(high) - 1 if whole else float(high))
        bars.append(Bar(written(ends), int(here[index]), int(everywhere[index]), chosen == ends))
    return Histogram(name, label, bars, int(len(left) - len(left_known)), log)


def _binned(values: packed.Array, edges: packed.Array) -> NDArray[np.int64]:
    """Counts per bar; each holds its lower edge, the last one everything above."""
    found = np.searchsorted(edges.astype(np.float32)[:-1], values, side="right") - 1
    return np.bincount(np.maximum(found, 0), minlength=len(edges) - 1)


def _edges(name: str, low: float, high: float, whole: bool) -> tuple[packed.Array, bool]:
    """Edges at numbers that people read easily, and whether they grow by factors."""
    if name == "strength":
        return np.array([-3.5, -2.5, -1.5, -0.5, 0.5, 1.5, 2.5, 3.5]), False
    if name in ("agreement", "pass_rate"):
        return np.arange(11) / 10, False
    if name == "ratio":
        return np.array([0, 0.25, 0.33, 0.5, 0.67, 0.8, 0.9, 1, 1.1, 1.25, 1.5, 2, 3, 4, 8]), True
    if whole and high - low < BARS:
        return np.arange(low, high + 2), False
    if whole and high > 100:
        steps = np.array([0] + [b * 10**e for e in range(9) for b in (1, 2, 3, 5, 7)], float)
        first, last = np.searchsorted(steps, low, side="right") - 1, np.searchsorted(steps, high, side="right")
        return steps[max(first, 0) : last + 1], True
    width = max(1, int(np.ceil((high - low + 1) / BARS)))
    return np.arange(low, high + width + 1, width), False
