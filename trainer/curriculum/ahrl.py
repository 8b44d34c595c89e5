"""AHRL, hints that fade (ERNIE 5.0, 2026): the prompt shows the first part of the reference reasoning."""

import math


def hint_share(p0: float, gamma: float, t: int, pass0: float) -> float:
    """Share of the reference reasoning that is shown at iteration t: `p0 exp(-gamma t pass0)`.

    `pass0` is the prompt's pass rate before the run. At 0 the hint never fades.
    """
    return p0 * math.exp(-(pass0 * gamma) * t) if pass0 else p0
