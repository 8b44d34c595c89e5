"""Estimates for pages and commands: a value with its n and 95% interval, or the reason why there is none.

Axes: C cases (or clusters of cases), F columns summed over cases, D bootstrap draws, P kinds of interchangeable cases.
"""

import math
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

Floats = NDArray[np.float64]
BOOTSTRAP_DRAWS = 1000
SEED = 20_110  # fixed, so that the same data always shows the same interval
Z95 = 1.959963984540054
SINGLE = "one case has no spread"
SINGLE_GROUP = "one group has no spread"  # such as the responses to a single prompt
MAX_NUMBERS = 4_000_000  # of resample counts in memory at a time
COUNTED_TOGETHER = 20_000  # of them: few calls for small samples, and no more than the cache holds


@dataclass(frozen=True)
class Estimate:
    """`value` is None if, and only if, `undefined` says why. `low` and `high` are None if `value` is, or if `interval` says why.

    `n`: the cases on which the value rests. `missing`: other cases, which have no value; each metric says whether they count
    against it.
    """

    value: float | None
    n: int
    low: float | None = None
    high: float | None = None
    missing: int = 0
    undefined: str = ""
    interval: str = ""

    def json(self) -> dict[str, Any]:
        """As the API, stored results and commands give it: `undefined` and `interval` only if they are not empty."""
        numbers = {name: getattr(self, name) for name in ("value", "n", "low", "high", "missing")}
        reasons = {name: getattr(self, name) for name in ("undefined", "interval") if getattr(self, name)}
        return numbers | reasons


def numbers(values: Iterable[float | bool | None]) -> Floats:
    """The values as floats, NaN if one is missing."""
    return np.array(list(values), dtype=np.float64)  # None becomes NaN


def undefined_estimate(reason: str, n: int = 0, missing: int = 0) -> Estimate:
    """An estimate that does not exist: it says so, and is never 0 or NaN."""
    return Estimate(None, n, missing=missing, undefined=reason)


def proportion(successes: int, n: int, missing: int = 0, empty: str = "no cases") -> Estimate:
    """A share with its Wilson score interval (Wilson, 1927); `empty` is the reason if n is 0."""
    if n == 0:
        return undefined_estimate(empty, missing=missing)
    # the interval of scipy.stats.binomtest to the last digit; that also makes a test, which takes milliseconds, and takes a second to load
    successes, n, square = int(successes), int(n), Z95**2
    share = successes / n
    whole = 2 * (n + square)
    middle, half = (2 * n * share + square) / whole, Z95 / whole * math.sqrt(4 * n * share * (1 - share) + square)
    low, high = middle - half if successes else 0.0, middle + half if successes < n else 1.0
    return Estimate(share, n, low, high, missing)


def bootstrap_estimate(value: float, n: int, draws_D: Floats, missing: int = 0) -> Estimate:
    """An estimate with the percentile interval of `draws_D` (Efron, 1979), or with the reason why it has none.

    The interval is widened to hold the value, which rounding or a skewed statistic may leave just outside.
    """
    if n < 2:
        return Estimate(float(value), int(n), missing=missing, interval=SINGLE)
    interval = percentile_interval(draws_D)
    if interval is None:
        return Estimate(float(value), int(n), missing=missing, interval="undefined in most resamples")
    return Estimate(float(value), int(n), min(interval[0], float(value)), max(interval[1], float(value)), missing)


def bootstrap_mean(values_C: ArrayLike, missing: int = 0, empty: str = "no cases", *, share: bool = False) -> Estimate:
    """Mean of independent cases with a bootstrap interval. `share`: see `bootstrap_sums`."""
    values = np.asarray(values_C, dtype=np.float64)
    return bootstrap_ratio(values, np.ones(len(values)), missing=missing, empty=empty, share=share)


def bootstrap_ratio(
    above_C: ArrayLike,
    below_C: ArrayLike,
    *,
    clusters: Sequence[object] | None = None,
    missing: int = 0,
    empty: str = "no cases",
    share: bool = False,
) -> Estimate:
    """sum(above) / sum(below) over cases, resampled by case or by cluster; n is sum(below). `share`: see `bootstrap_sums`."""
    above, below = np.asarray(above_C, dtype=np.float64), np.asarray(below_C, dtype=np.float64)
    if not below.sum():
        return undefined_estimate(empty, missing=missing)
    return bootstrap_sums(
        np.column_stack([above, below]),
        lambda sums_DF: sums_DF[:, 0] / sums_DF[:, 1],
        n=round(float(below.sum())),
        clusters=clusters,
        missing=missing,
        empty=empty,
        share=share,
    )


def share_over_clusters(
    right_C: Sequence[bool], clusters: Sequence[object] | None, missing: int = 0, empty: str = "no cases"
) -> Estimate:
    """The share of cases that are right. Cases of one cluster are drawn together; if no two are, the interval is Wilson's.

    With a single cluster of several cases there is no interval.
    """
    if clusters is None or len(set(clusters)) == len(right_C):
        return proportion(sum(right_C), len(right_C), missing, empty)
    return bootstrap_ratio(right_C, np.ones(len(right_C)), clusters=clusters, missing=missing, empty=empty, share=True)


def bootstrap_sums(
    columns_CF: Floats,
    statistic: Callable[[Floats], Floats],
    *,
    n: int | None = None,
    clusters: Sequence[object] | None = None,
    missing: int = 0,
    empty: str = "no cases",
    share: bool = False,
) -> Estimate:
    """Any statistic that is a function of column sums over cases: ratios, correlations, kappas, macro averages.

    `statistic` maps sums (D, F) to values (D,), NaN if it is undefined. Cases of one cluster (the responses to one
    prompt, the verdicts on one pair) are drawn together: they are not independent. With NaN on the data itself, the
    estimate is undefined for the reason `empty`; with a single case or cluster it has no interval.

    `share`: the statistic lies between 0 and 1 in every case. If all clusters say the same, their resamples do not
    vary, which does not mean certainty: the interval is then Wilson's over the clusters, each of which counts once.
    """
    counted = len(columns_CF) if n is None else n
    if not len(columns_CF):
        return undefined_estimate(empty, missing=missing)
    rows = columns_CF if clusters is None else clustered(columns_CF, clusters)
    with np.errstate(invalid="ignore", divide="ignore"):
        value = float(statistic(rows.sum(0)[None])[0])
        if not np.isfinite(value):
            return undefined_estimate(empty, counted, missing)
        if len(rows) == 1:
            alone = SINGLE if len(columns_CF) == 1 else SINGLE_GROUP
            return Estimate(value, counted, missing=missing, interval=alone)
        draws_D = np.concatenate([statistic(sums_DF) for sums_DF in _resampled_sums(rows)])
    found = bootstrap_estimate(value, counted, draws_D, missing)
    if not share or found.low is None or found.low != found.high or not 0 <= value <= 1:
        return found
    low, high = wilson(value, len(rows))
    return Estimate(value, counted, low, high, missing)


def wilson(share: float, n: int) -> tuple[float, float]:
    """The 95% score interval of a share of n cases (Wilson, 1927)."""
    z2 = Z95**2
    middle, half = share + z2 / (2 * n), Z95 * np.sqrt(share * (1 - share) / n + z2 / (4 * n * n))
    return max(0.0, float((middle - half) / (1 + z2 / n))), min(1.0, float((middle + half) / (1 + z2 / n)))


def _resampled_sums(rows_CF: Floats) -> Iterator[Floats]:
    """(draws, F): column sums of each bootstrap sample. Equal rows are interchangeable: a few kinds cost a few columns."""
    kinds_PF, n_P = kinds(rows_CF)
    if 2 * len(kinds_PF) <= len(rows_CF):
        yield resampled_kinds(n_P) @ kinds_PF
        return
    for weights_DC in resamples(len(rows_CF)):
        yield weights_DC @ rows_CF


def kinds(rows_CF: Floats) -> tuple[Floats, Floats]:
    """The distinct rows in a fixed order, and how many there are of each."""
    found = Counter(map(bytes, np.ascontiguousarray(rows_CF)))  # np.unique would sort every row
    ordered = sorted(found)
    kinds_PF = np.frombuffer(b"".join(ordered), dtype=np.float64).reshape(len(ordered), rows_CF.shape[1])
    return kinds_PF, np.array([found[row] for row in ordered], dtype=np.float64)


def clustered(columns_CF: Floats, clusters: Sequence[object]) -> Floats:
    """Column sums of each cluster, in the order of first appearance."""
    place: dict[object, int] = {}
    index = [place.setdefault(cluster, len(place)) for cluster in clusters]
    sums = np.zeros((len(place), columns_CF.shape[1]))
    np.add.at(sums, index, columns_CF)
    return sums


def resamples(units: int, draws: int = BOOTSTRAP_DRAWS) -> Iterator[Floats]:
    """(draws, units): how often each unit was drawn in each bootstrap sample; in blocks, so that memory stays flat."""
    generator = np.random.default_rng(SEED)
    step, together = max(1, MAX_NUMBERS // units), max(1, COUNTED_TOGETHER // units)
    for done in range(0, draws, step):
        weights_DC = np.empty((min(step, draws - done), units))
        for first in range(0, len(weights_DC), together):
            part = weights_DC[first : first + together]
            # counting drawn units is several times quicker than one multinomial of many categories
            drawn = generator.integers(units, size=part.shape)
            drawn += np.arange(0, part.size, units)[:, None]  # the units of each sample have their own numbers
            part[:] = np.bincount(drawn.ravel(), minlength=part.size).reshape(part.shape)
        yield weights_DC


def resampled_kinds(n_P: Floats, draws: int = BOOTSTRAP_DRAWS) -> Floats:
    """(draws, kinds): the same if units of one kind are interchangeable and kind p has `n_P[p]` of them.

    The kinds of a resample are multinomial for any number of units, so 100,000 units of 40 kinds cost 40 columns.
    """
    total = int(n_P.sum())
    generator = np.random.default_rng(SEED)
    return generator.multinomial(total, n_P / total, size=draws).astype(np.float64)


def percentile_interval(draws_D: Floats) -> tuple[float, float] | None:
    """The central 95% of the draws that are defined; None if fewer than half are defined."""
    defined = draws_D[np.isfinite(draws_D)]
    if len(defined) * 2 < len(draws_D) or not len(defined):
        return None
    low, high = np.quantile(defined, [0.025, 0.975])
    return float(low), float(high)
