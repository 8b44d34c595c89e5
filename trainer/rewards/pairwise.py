"""What a pairwise judge says when it is asked in both orders (METHODS 2 and 5).

A judge names places, the response shown first or second; here places become responses again.
"""

from typing import Literal

Place = Literal["first", "second", "tie"]
Side = Literal["A", "B", "tie"]
_OTHER: dict[Side, Side] = {"A": "B", "B": "A", "tie": "tie"}


def remax_pairwise(sample_first: Place | None, sample_second: Place | None) -> float | None:
    """Reward of a sample against the greedy answer: `(1[wins when shown first] + 1[wins when shown second]) / 2`.

    `sample_first` is the place that won where the sample was shown first, `sample_second` where it was shown second. A
    tie is no win. None where an order has no verdict. (ReMax baseline, Li et al., 2024; Rubric-ARM, 2026, eq. 16)
    """
    if sample_first is None or sample_second is None:
        return None
    return ((sample_first == "first") + (sample_second == "second")) / 2


def swap_consistent(given: Side | None, swapped: Side | None) -> Side | None:
    """The verdict that both orders agree on, a tie included; None where they differ or one is missing.

    `swapped` is as the judge said it with the answers in swapped order: its "A" is the pair's B.
    """
    if given is None or swapped is None or given != _OTHER[swapped]:
        return None
    return given
