"""The verdict of a pairwise judge that is asked in both orders.

A judge names places, the response shown first or second; this module turns places into responses.
"""

from typing import Literal

Place = Literal["first", "second", "tie"]
Side = Literal["A", "B", "tie"]
_OTHER: dict[Side, Side] = {"A": "B", "B": "A", "tie": "tie"}


def remax_pairwise(sample_first: Place | None, sample_second: Place | None) -> float | None:
    """The reward of a sample against the greedy answer: `(1[wins when shown first] + 1[wins when shown second]) / 2`.

    `sample_first` is the place that won when the sample was shown first, `sample_second` when it was shown second. A tie is not a win. None
    if an order has no verdict. (ReMax baseline, Li et al., 2024; Rubric-ARM, 2026, eq. 16)
    """
    if sample_first is None or sample_second is None:
        return None
    return ((sample_first == "first") + (sample_second == "second")) / 2


def swap_consistent(given: Side | None, swapped: Side | None) -> Side | None:
    """The verdict on which both orders agree, which may be a tie; None if they differ or one is missing.

    `swapped` is the verdict that the judge gave in the swapped order: its "A" is the pair's B.
    """
    if given is None or swapped is None or given != _OTHER[swapped]:
        return None
    return given
