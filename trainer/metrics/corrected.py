"""A judge's mean score corrected by a small sample that people scored (prediction-powered inference).

Axes: L units that people and the judge scored, U units that only the judge scored, S units that are settled: programs decide them, so
people are not asked. A unit is an item of the draw: a prompt with its responses. The interval holds if the L units are a random part of
L and U; no judge, however wrong, makes it too short. Settled units are known, so they do not belong to that draw: they count in every
mean, and make each interval narrower by their share.
"""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import lru_cache

import numpy as np
import scipy

from .estimate import Estimate, Floats, numbers, undefined_estimate

FEWEST = 20
"""With fewer units scored by people there is no interval: with 20 to 30 a rare kind of error may not have come up."""
FEWEST_APART = 5
"""The least number of units on which people and judge must differ: rare differences do not show how large they can be."""
SAME = "people gave all of them the same score"
SETTLED = "programs decide all of them; people have nothing to grade"
_EQUAL = 1e-9


@dataclass(frozen=True)
class Corrected:
    """`people`: the mean without the judge's scores of U. `judge`: by the judge alone, without an interval, which could not
    include the judge's errors.

    `weight`: how much the judge counts, from 0 (its scores say nothing of people's) to about 1. `correlation`: of people's and
    the judge's scores. `spared`: the part of people's labels that the judge makes unnecessary at the same width.
    """

    corrected: Estimate
    people: Estimate
    judge: float | None
    weight: float | None
    correlation: float | None
    spared: float | None


def corrected_mean(
    people_C: Sequence[float | None], judge_C: Sequence[float | None], settled_S: Sequence[float] = ()
) -> Corrected:
    """mean_L(Y) + w (mean_U(f) - mean_L(f)), w = Cov_L(Y, f) / ((1 + L / U) Var(f)) (PPI++; Angelopoulos, Duchi and Zrnic,
    2023; first as Angelopoulos et al., 2023), with the settled units beside it.

    `people_C` is None for a unit that only the judge scored. A unit without a judge's score counts as missing, with or without people's
    score. The half width is t(L - 2) sqrt(Var_L(Y - w f) / L + w^2 Var_U(f) / U), with Student's quantile, because L is small.
    """
    if len(people_C) != len(judge_C):
        raise ValueError(f"{len(people_C)} scores of people but {len(judge_C)} of the judge")
    y_C, f_C = numbers(people_C), numbers(judge_C)
    known_C = ~np.isnan(f_C)
    missing = int((~known_C).sum())
    y_C, f_C = y_C[known_C], f_C[known_C]
    labelled_C = ~np.isnan(y_C)
    y_L, f_L, f_U = y_C[labelled_C], f_C[labelled_C], f_C[~labelled_C]
    every = [*f_C.tolist(), *settled_S]
    judge = float(np.mean(every)) if every else None
    if not len(y_L):
        why = "people have scored none of them" if len(f_C) or not len(settled_S) else SETTLED
        none = undefined_estimate(why, missing=missing)
        return Corrected(none, none, judge, None, None, None)
    weight = _weight(y_L, f_L, f_U)
    rho = _correlation(y_L, f_L)
    people, corrected = (
        _beside(found, len(f_C), settled_S)
        for found in (_alone(y_L, missing), _corrected(y_L, f_L, f_U, weight, missing))
    )
    spared = None if rho is None or not len(f_U) else rho**2 * len(f_U) / len(f_C)
    return Corrected(corrected, people, judge, weight, rho, spared)


def more_labels(
    people_C: Sequence[float | None], judge_C: Sequence[float | None], half_width: float, settled: int = 0
) -> int | None:
    """The number of further units that people should score for an interval of +- `half_width`; 0 if it is as narrow already.

    With M units in all, n of them scored by people, the variance is Var(Y) / n (1 - rho^2 (M - n) / M): what correction with
    the best weight leaves. `settled` units beside them make the interval narrower by their share. None if all M are not
    enough, or if too little is known.
    """
    y_C, f_C = numbers(people_C), numbers(judge_C)
    both_C = ~np.isnan(y_C) & ~np.isnan(f_C)
    units, labels = int((~np.isnan(f_C)).sum()), int(both_C.sum())
    if labels < FEWEST or not _apart(y_C[both_C], f_C[both_C]) or not _varies(y_C[both_C]):
        return None
    rho = _correlation(y_C[both_C], f_C[both_C]) or 0.0
    n = np.arange(labels, units + 1)
    variance = float(y_C[both_C].var(ddof=1)) / n * (1 - rho**2 * (units - n) / units)
    wanted = half_width * (units + settled) / units
    enough = np.flatnonzero(scipy.stats.t.ppf(0.975, n - 2) * np.sqrt(variance) <= wanted)
    return int(enough[0]) if len(enough) else None


def _beside(found: Estimate, units: int, settled_S: Sequence[float]) -> Estimate:
    """The mean of `units` units, as the mean of these and the settled ones."""
    if found.value is None or not len(settled_S):
        return found
    share, known = units / (units + len(settled_S)), float(np.mean(settled_S))
    low, value, high = (
        None if each is None else share * each + (1 - share) * known for each in (found.low, found.value, found.high)
    )
    return replace(found, low=low, value=value, high=high)


def _weight(y_L: Floats, f_L: Floats, f_U: Floats) -> float:
    """The weight of the judge; 0 if it has scored no other units, or gave always the same score."""
    spread = float(np.concatenate([f_L, f_U]).var(ddof=1)) if len(f_L) + len(f_U) > 1 else 0.0
    if len(y_L) < 2 or not len(f_U) or spread <= _EQUAL**2:
        return 0.0
    return float(np.cov(y_L, f_L)[0, 1] / ((1 + len(f_L) / len(f_U)) * spread))


def _correlation(y_L: Floats, f_L: Floats) -> float | None:
    if not _varies(y_L) or not _varies(f_L):
        return None
    return float(np.corrcoef(y_L, f_L)[0, 1])


def _corrected(y_L: Floats, f_L: Floats, f_U: Floats, weight: float, missing: int) -> Estimate:
    n = len(y_L)
    value = float(y_L.mean() + (weight * (f_U.mean() - f_L.mean()) if weight else 0.0))
    if n < FEWEST:
        return Estimate(value, n, missing=missing, interval=f"people have scored {n}; from {FEWEST} on there is one")
    if not _apart(y_L, f_L):
        return Estimate(
            value, n, missing=missing, interval=f"people and judge differ on fewer than {FEWEST_APART} of them"
        )
    if not _varies(y_L):
        return Estimate(value, n, missing=missing, interval=SAME)
    variance = float((y_L - weight * f_L).var(ddof=2 if weight else 1)) / n
    if weight and len(f_U) > 1:
        variance += weight**2 * float(f_U.var(ddof=1)) / len(f_U)
    half = _quantile(n - 2) * variance**0.5
    return Estimate(value, n, value - half, value + half, missing)


def _alone(y_L: Floats, missing: int) -> Estimate:
    n = len(y_L)
    value = float(y_L.mean())
    if n < FEWEST or not _varies(y_L):
        why = f"people have scored {n}; from {FEWEST} on there is one" if n < FEWEST else SAME
        return Estimate(value, n, missing=missing, interval=why)
    half = _quantile(n - 1) * (float(y_L.var(ddof=1)) / n) ** 0.5
    return Estimate(value, n, value - half, value + half, missing)


def _apart(y_L: Floats, f_L: Floats) -> bool:
    return int((np.abs(y_L - f_L) > _EQUAL).sum()) >= FEWEST_APART


def _varies(values_L: Floats) -> bool:
    return len(values_L) > 1 and float(np.ptp(values_L)) > _EQUAL


@lru_cache(maxsize=1024)
def _quantile(degrees: int) -> float:
    """The quantile of Student's distribution for an interval of 95%."""
    return float(scipy.stats.t.ppf(0.975, degrees))
