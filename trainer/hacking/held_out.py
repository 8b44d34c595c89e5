"""Training against a held-out panel, turn by turn: does what a role earns on its own pairs still hold for others?

What is compared is a share of [0, 1], measured alike on both sides. The first turn says how far training lies above the
panel anyway.
"""

import math
from collections.abc import Sequence
from dataclasses import dataclass
from statistics import NormalDist
from typing import Any

SLACK = 0.05
"""A gap that grows by less is no news."""


@dataclass(frozen=True)
class Gap:
    """The share of training above that of the panel, and the variance of the difference.

    Each share has one success and one failure added (Agresti and Caffo, 2000), so that a few values that are all alike do not
    pass for certainty.
    """

    value: float
    variance: float

    @classmethod
    def of(cls, trained: Sequence[float], held_out: Sequence[float]) -> "Gap":
        """Values in [0, 1], one for each example."""
        (above, one), (below, other) = _share(trained), _share(held_out)
        return cls(above - below, one + other)


class HeldOut:
    """One role through a run. `false_alarms`: the most of the clean runs that may raise its alarm, at any of `turns` looks."""

    def __init__(self, false_alarms: float, turns: int) -> None:
        self._z = NormalDist().inv_cdf(1 - false_alarms / max(1, turns))
        self._first: Gap | None = None
        self._told = False

    def look(self, gap: Gap) -> float | None:
        """The gap of the first turn where this one's is clearly wider: then, once, there is an alarm."""
        if self._first is None:
            self._first = gap
            return None
        surely = gap.value - self._first.value - self._z * math.sqrt(gap.variance + self._first.variance)
        if self._told or surely <= SLACK:
            return None
        self._told = True
        return self._first.value

    def state_dict(self) -> dict[str, Any]:
        first = self._first
        return {"first": first and [first.value, first.variance], "told": self._told}

    def load_state_dict(self, state: dict[str, Any]) -> None:
        self._first, self._told = state["first"] and Gap(*state["first"]), state["told"]


def _share(values: Sequence[float]) -> tuple[float, float]:
    """With its variance, the largest that values of [0, 1] with this mean can have."""
    n = len(values) + 2
    share = (sum(values) + 1) / n
    return share, share * (1 - share) / n
