"""Estimates as the product shows them: a value with its n and a 95% interval, or the reason why there is none."""

from collections.abc import Callable
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy.stats import binomtest

Estimate = dict[str, Any]
BOOTSTRAP_DRAWS = 1000
SEED = 20_110  # fixed, so that the same data always shows the same interval


def undefined(reason: str) -> Estimate:
    """An estimate that does not exist: said as such, never 0 or NaN."""
    return {"undefined": reason}


def estimate(value: float, n: int, low: float, high: float) -> Estimate:
    return {"value": float(value), "n": int(n), "low": float(low), "high": float(high)}


def proportion(successes: int, n: int) -> Estimate:
    """A share with its Wilson score interval (Wilson, 1927)."""
    if n == 0:
        return undefined("no cases")
    interval = binomtest(int(successes), int(n)).proportion_ci(method="wilson")
    return estimate(successes / n, n, interval.low, interval.high)


def resampled_counts(units: int, draws: int = BOOTSTRAP_DRAWS) -> NDArray[np.float64]:
    """(draws, units): how often each unit was drawn in each bootstrap sample."""
    generator = np.random.default_rng(SEED)
    return generator.multinomial(units, np.full(units, 1 / units), size=draws).astype(np.float64)


def resampled_kinds(n_P: NDArray[np.float64], draws: int = BOOTSTRAP_DRAWS) -> NDArray[np.float64]:
    """(draws, kinds): the same where units of one kind are interchangeable and kind p has `n_P[p]` of them.

    The kinds of a resample are multinomial whatever the number of units, so 100,000 units of 40 kinds cost 40 columns.
    """
    total = int(n_P.sum())
    generator = np.random.default_rng(SEED)
    return generator.multinomial(total, n_P / total, size=draws).astype(np.float64)


def percentile_interval(draws: NDArray[np.float64]) -> tuple[float, float] | None:
    """The central 95% of the draws that are defined; None when fewer than half are."""
    defined = draws[np.isfinite(draws)]
    if len(defined) * 2 < len(draws) or not len(defined):
        return None
    low, high = np.quantile(defined, [0.025, 0.975])
    return float(low), float(high)


def bootstrapped(value: float, n: int, draws: NDArray[np.float64]) -> Estimate:
    """An estimate with the percentile interval of `draws`, or with the reason why it has none."""
    interval = percentile_interval(draws)
    if interval is None:
        return {
            "value": float(value),
            "n": int(n),
            "low": None,
            "high": None,
            "interval": "undefined in most resamples",
        }
    return estimate(value, n, *interval)


def bootstrap_mean(values: NDArray[np.float64]) -> Estimate:
    """Mean of independent cases with a percentile bootstrap interval (Efron, 1979)."""
    if not len(values):
        return undefined("no cases")
    return bootstrapped(float(values.mean()), len(values), _in_blocks(values, lambda w: w @ values / len(values)))


def _in_blocks(
    values: NDArray[np.float64], statistic: Callable[[NDArray[np.float64]], NDArray[np.float64]], block: int = 4_000_000
) -> NDArray[np.float64]:
    """`statistic` of resample counts, drawn in blocks so that memory stays flat in the number of cases."""
    generator = np.random.default_rng(SEED)
    n = len(values)
    step = max(1, block // n)
    shares = np.full(n, 1 / n)
    parts = [
        statistic(generator.multinomial(n, shares, size=min(step, BOOTSTRAP_DRAWS - done)).astype(np.float64))
        for done in range(0, BOOTSTRAP_DRAWS, step)
    ]
    return np.concatenate(parts)
