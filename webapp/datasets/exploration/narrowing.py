"""Filters and counts the examples of a version. Words are found by an index, everything else by packed columns."""

from dataclasses import dataclass, replace
from functools import partial
from typing import Any, cast

import numpy as np
from numpy.typing import NDArray

from ..columns import packed
from ..columns.arrays import Array
from ..columns.filters import RANGES, Filters, Range, written
from ..index import postings, tokenizer
from ..models import CurationJob, DatasetVersion
from . import probes

Positions = NDArray[np.int64]
BARS = 24


def positions(version: DatasetVersion, filters: Filters, after: int = -1, most: int = 51) -> list[int]:
    """The first `most` positions after `after` that the filters leave, in the version's order."""
    if filters == Filters():
        return list(range(after + 1, min(after + 1 + most, version.counts.get("examples", 0))))
    return [int(each) for each in all_positions(version, filters, after)[:most]]


def all_positions(version: DatasetVersion, filters: Filters, after: int = -1) -> Positions:
    """Every position after `after` that the filters leave, in order."""
    held = packed.columns(version)
    kept = _and(packed.mask(held, filters), _spoken(version, held, filters))
    if filters.reach or filters.pass_rate or filters.probe is not None:
        kept = _and(kept, _passed(probes.passed(version, filters), filters))
    if kept is None:
        return np.arange(after + 1, held.size)
    return np.flatnonzero(kept[after + 1 :]) + after + 1


def _spoken(version: DatasetVersion, held: packed.Columns, filters: Filters) -> packed.Mask | None:
    """The positions that have every word of the search; None without a search."""
    if not filters.text.strip():
        return None
    asked = tokenizer.terms(filters.text)
    kept: packed.Mask | None = None if asked else np.zeros(held.size, bool)
    for word, prefix in asked:
        kept = _and(kept, np.isin(held[packed.ID], postings.holding(version.dataset_id, word, prefix)))
    return kept


def _passed(found: probes.Passed, filters: Filters) -> packed.Mask | None:
    """The positions with such a pass rate; None without this filter."""
    kept = found.reach(filters.reach) if filters.reach else None
    return _and(kept, packed.within(found.rate, filters.pass_rate, False) if filters.pass_rate else None)


def _and(one: packed.Mask | None, other: packed.Mask | None) -> packed.Mask | None:
    return other if one is None else one if other is None else one & other


def removed(version: DatasetVersion, filters: Filters, keep: bool, job: CurationJob | None) -> Positions:
    """The positions to remove, in order: the findings of `job`, or those that the filters do not leave (`keep` False: leave)."""
    if job:
        found = job.findings.filter(removes=True).values_list("position", flat=True)
        return np.unique(np.fromiter(found.iterator(), np.int64))
    left = all_positions(version, filters)
    if not keep:
        return left
    return np.setdiff1d(np.arange(version.counts.get("examples", 0)), left, assume_unique=True)


def count(version: DatasetVersion, filters: Filters) -> int:
    """The number of examples that pass the filters."""
    return len(all_positions(version, filters))


@dataclass(frozen=True)
class Bar:
    """`range` is the filter that a click on the bar sets; `count` of `all` examples in it are left by the filters."""

    range: str
    count: int
    all: int
    chosen: bool


@dataclass(frozen=True)
class ColumnHistogram:
    """One column. `missing`: examples among those left that have no value in it."""

    name: str
    label: str
    bars: list[Bar]
    missing: int
    log: bool


SHOWN = ("length", "ratio", "criteria", "strength", "prompt_length", "agreement", "constraints", "pass_rate")


def histograms(version: DatasetVersion, filters: Filters) -> list[ColumnHistogram]:
    """The columns with more than one value, each narrowed by all filters but its own, so that a person can move from a chosen bar to its
    neighbour."""
    held = packed.columns(version)
    spoken = _spoken(version, held, filters)
    passed = probes.passed(version, filters)
    made = []
    for name in SHOWN:
        values = passed.rate if name == "pass_rate" else held[RANGES[name][0]]
        key = f"bars of {name} {filters.probe or ''}" if name == "pass_rate" else f"bars of {name}"
        if bins := held.once(key, partial(_bins, values, name)):
            others = replace(filters, **cast(Any, {name: None}))
            kept = _and(_and(packed.mask(held, others), _passed(passed, others)), spoken)
            made.append(_histogram(name, bins, kept, getattr(filters, name)))
    return made


@dataclass(frozen=True)
class _Bins:
    """The bars of one column between its edges. `of` is the bar of each position; a position without a value has the number after the last
    bar. `counts` are those of all positions."""

    edges: Array
    log: bool
    of: NDArray[np.uint8]
    counts: NDArray[np.int64]


def _bins(values: Array, name: str) -> _Bins | None:
    """The bars; None if the column has fewer than two values."""
    whole = RANGES[name][2]
    missing = np.isnan(values) if values.dtype.kind == "f" else np.zeros(len(values), bool)
    known = values[~missing]
    if not len(known) or known.min() == known.max():
        return None
    edges, log = _edges(name, float(known.min()), float(known.max()), whole)
    # a lower edge belongs to its bar; the first bar has all smaller values too, and the last one all greater ones
    found = np.searchsorted(edges[1:-1].astype(np.float32), values, side="right").astype(np.uint8)
    found[missing] = len(edges) - 1
    return _Bins(edges, log, found, np.bincount(found, minlength=len(edges)))


def _histogram(name: str, bins: _Bins, kept: packed.Mask | None, chosen: Any) -> ColumnHistogram:
    _, label, whole = RANGES[name]
    edges = bins.edges
    here = bins.counts if kept is None else np.bincount(bins.of[kept], minlength=len(edges))
    bars = []
    for index, (low, high) in enumerate(zip(edges[:-1], edges[1:], strict=True)):
        last = index == len(edges) - 2
        ends = (float(low), None if last else float(high) - 1 if whole else float(high))
        bars.append(Bar(written(ends), int(here[index]), int(bins.counts[index]), _within(ends, chosen)))
    return ColumnHistogram(name, label, bars, int(here[-1]), bins.log)


def _within(ends: Range, chosen: Range | None) -> bool:
    """Whether the bar lies in the chosen range, which may span several bars."""
    if chosen is None:
        return False
    (low, high), (least, most) = ends, chosen
    above = least is None or (low is not None and low >= least)
    return above and (most is None or (high is not None and high <= most))


def _edges(name: str, low: float, high: float, whole: bool) -> tuple[Array, bool]:
    """Edges at round numbers, and whether they grow by factors."""
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
