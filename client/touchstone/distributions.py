"""Distributions as metrics: the quantiles of a histogram, each a series of its own. A page draws the median with a band around it."""

import math
from bisect import bisect_left
from collections.abc import Iterable, Iterator, Sequence
from itertools import accumulate
from typing import Any

SHARES = {"p5": 0.05, "p50": 0.5, "p95": 0.95}
"""The ends of the names, such as `weights/p50`, and the share of the values that lie below."""


class Histogram:
    """Numbers of which a run keeps the quantiles: `wandb.log({"weights": wandb.Histogram(values)})`. `np_histogram`: counts and edges."""

    def __init__(self, sequence: Any = None, np_histogram: tuple[Any, Any] | None = None, **_: Any) -> None:
        if np_histogram is None:
            self.quantiles = of_values([] if sequence is None else sequence)
        else:
            counts, edges = (list(_numbers(each)) for each in np_histogram)
            self.quantiles = of_counts(edges, counts)


def of_values(values: Any) -> dict[str, float]:
    """The quantiles of numbers, in nested lists or in an array. Numbers that are not finite are left out. Empty if none is left."""
    found = sorted(number for number in _numbers(values) if math.isfinite(number))
    return {name: _between(found, share * (len(found) - 1)) for name, share in SHARES.items()} if found else {}


def of_counts(edges: Sequence[float], counts: Sequence[float]) -> dict[str, float]:
    """The quantiles of a histogram, as if the values of a bin lay evenly in it. `edges` has one more entry than `counts`. Empty if there
    are no values, or if these are not the edges and counts of a histogram."""
    ends = list(accumulate(counts))
    fits = len(edges) == len(counts) + 1 and all(math.isfinite(each) for each in (*edges, *counts))
    if not fits or not ends or ends[-1] <= 0 or min(counts) < 0:
        return {}
    return {name: _inside(edges, counts, ends, share * ends[-1]) for name, share in SHARES.items()}


def _between(values: Sequence[float], place: float) -> float:
    low = math.floor(place)
    high = min(low + 1, len(values) - 1)
    return values[low] + (values[high] - values[low]) * (place - low)


def _inside(edges: Sequence[float], counts: Sequence[float], ends: Sequence[float], wanted: float) -> float:
    place = bisect_left(ends, wanted)
    inside = 1 - (ends[place] - wanted) / counts[place] if counts[place] else 0.0
    return edges[place] + (edges[place + 1] - edges[place]) * inside


def _numbers(values: Any) -> Iterator[float]:
    """Every number of an array, a tensor, or lists in lists."""
    plain = values.tolist() if callable(getattr(values, "tolist", None)) else values
    if isinstance(plain, Iterable) and not isinstance(plain, str | bytes):
        for each in plain:
            yield from _numbers(each)
    else:
        yield float(plain)
