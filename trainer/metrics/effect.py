"""Effect sizes of paired scores (MaMs). Axes: C cases, D bootstrap draws."""

from collections.abc import Sequence
from functools import partial

import numpy as np

from .estimate import Estimate, Floats, bootstrap_sums, numbers, undefined_estimate

_ROUNDING = 1e-12


def cohens_d(
    chosen_C: Sequence[float | None], rejected_C: Sequence[float | None], clusters_C: Sequence[object] | None = None
) -> Estimate:
    """Paired Cohen's d (1988): mean(D) / std(D, ddof=1) with D = chosen - rejected. Pairs of one cluster are resampled together.

    It is undefined with fewer than two pairs, and if all differences are the same. Pairs that lack a score are counted in `missing`.
    """
    if len(chosen_C) != len(rejected_C):
        raise ValueError(f"{len(chosen_C)} scores of chosen but {len(rejected_C)} of rejected")
    difference_C = numbers(chosen_C) - numbers(rejected_C)
    missing = int(np.isnan(difference_C).sum())
    known_C = ~np.isnan(difference_C)
    difference_C = difference_C[known_C]
    clusters = None if clusters_C is None else [clusters_C[place] for place in np.flatnonzero(known_C)]
    n = len(difference_C)
    if n < 2:
        return undefined_estimate(f"{n} pair{'s' * (n != 1)} with both scores; a spread needs two", n, missing)
    if not np.isfinite(difference_C).all():
        return undefined_estimate("a difference is too large for a number", n, missing)
    # d has no unit: scaled by a power of two, which is exact; sums of squares about the mean keep their digits
    scale = 2.0 ** np.floor(np.log2(np.abs(difference_C).max() or 1.0))
    mean = float((difference_C / scale).mean())
    centred_C = difference_C / scale - mean
    columns_CF = np.column_stack([np.ones(n), centred_C, centred_C**2])
    same = "every difference is the same, so it has no spread"
    return bootstrap_sums(columns_CF, partial(_d, mean), clusters=clusters, missing=missing, empty=same)


def _d(mean: float, sums_DF: Floats) -> Floats:
    """d from sums of differences about `mean`."""
    n_D, sum_D, squares_D = sums_DF.T
    variance_D = (squares_D - sum_D**2 / n_D) / (n_D - 1)
    varies_D = variance_D > _ROUNDING
    return np.where(varies_D, (mean + sum_D / n_D) / np.sqrt(np.where(varies_D, variance_D, 1.0)), np.nan)
