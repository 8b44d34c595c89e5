"""Finds the plateau of a curve, and the next temperature of the sampler (GLM-4.5, 2025: dynamic temperature)."""

import math
from collections.abc import Mapping, Sequence

import scipy

_SURE = 0.975
_ROUNDING = 1e-12


def level(means: Sequence[float]) -> bool:
    """Whether the slope over `means`, one a step, cannot be distinguished from 0: its two-sided 95% t interval holds 0.

    The slope is that of least squares over 1..w with w - 2 degrees of freedom; the means are taken as independent. False if there are fewer
    than three.
    """
    w = len(means)
    if w < 3:
        return False
    middle, mean = (w - 1) / 2, math.fsum(means) / w
    spread = math.fsum((x - middle) ** 2 for x in range(w))
    slope = math.fsum((x - middle) * (y - mean) for x, y in enumerate(means)) / spread
    rest = math.fsum((y - mean - slope * (x - middle)) ** 2 for x, y in enumerate(means))
    error = math.sqrt(rest / (w - 2) / spread)
    return abs(slope) <= float(scipy.special.stdtrit(w - 2, _SURE)) * error + _ROUNDING


def highest_good_temperature(scores: Mapping[float, float | None], within: float) -> float | None:
    """The highest temperature whose score is at least `best - within |best|`; None if no temperature has a score.

    A temperature without a score is never chosen.
    """
    known = {temperature: score for temperature, score in scores.items() if score is not None}
    if not known:
        return None
    best = max(known.values())
    least = best - within * abs(best)
    return max(temperature for temperature, score in known.items() if score >= least - _ROUNDING)
