"""Effect sizes of paired scores (MaMs; METHODS 5). Axes: C cases, D bootstrap draws."""

from collections.abc import Sequence

import numpy as np

from .estimate import Estimate, Floats, bootstrap_sums, numbers, undefined

_ROUNDING = 1e-12


def cohens_d(chosen_C: Sequence[float | None], rejected_C: Sequence[float | None]) -> Estimate:
    """Paired Cohen's d (1988): mean(D) / std(D, ddof=1) with D = chosen - rejected.

    Undefined below two pairs and where every difference is the same. Pairs that lack a score are counted in `missing`.
    """
    if len(chosen_C) != len(rejected_C):
        raise ValueError(f"{len(chosen_C)} scores of chosen but {len(rejected_C)} of rejected")
    difference_C = numbers(chosen_C) - numbers(rejected_C)
    missing = int(np.isnan(difference_C).sum())
    difference_C = difference_C[~np.isnan(difference_C)]
    n = len(difference_C)
    if n < 2:
        return undefined(f"{n} pair{'s' * (n != 1)} with both scores; a spread needs two", n, missing)
    scale = float(np.abs(difference_C).max()) or 1.0  # d has no unit; sums of squares keep their digits
    columns_CF = np.column_stack([np.ones(n), difference_C / scale, (difference_C / scale) ** 2])
    return bootstrap_sums(columns_CF, _d, missing=missing, empty="every difference is the same, so it has no spread")


def _d(sums_DF: Floats) -> Floats:
    n_D, sum_D, squares_D = sums_DF.T
    variance_D = (squares_D - sum_D**2 / n_D) / (n_D - 1)
    varies_D = variance_D > _ROUNDING
    return np.where(varies_D, sum_D / n_D / np.sqrt(np.where(varies_D, variance_D, 1.0)), np.nan)
