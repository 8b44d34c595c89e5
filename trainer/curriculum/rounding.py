"""Rounds shares of whole numbers."""

import math

_NOISE = 1e-9


def half_up(value: float) -> int:
    """The nearest whole number to a value of 0 or more, halves up. A value that rounding has left just below a half counts as the half:
    (15 / 22) * 11 is 7.499999999999999 as floats.
    """
    return math.floor(value + 0.5 + _NOISE)
