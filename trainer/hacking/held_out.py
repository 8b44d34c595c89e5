"""Training against a held-out panel, turn by turn: does what a role earns on its own pairs still hold for other pairs?

The compared number is a share in [0, 1], measured alike on both sides. The first turn shows how far training lies above the
panel from the start.
"""

import math
from collections.abc import Sequence
from dataclasses import dataclass
from statistics import NormalDist
from typing import Any

SLACK = 0.05
"""A gap that grows by less raises no alarm."""


@dataclass(frozen=True)
class Gap:
    """The share of training minus that of the panel, and the variance of the difference.

    One success and one failure are added to each share (Agresti and Caffo, 2000), so that a few equal values do not count
    as certainty.
    """

    value: float
    variance: float

    @classmethod
    def of(cls, trained: Sequence[float], held_out: Sequence[float]) -> "Gap":
        """The gap between values in [0, 1], one for each example."""
        (above, one), (below, other) = _share(trained), _share(held_out)
        return cls(above - below, one + other)


class HeldOut:
    """One role through a run. `false_alarms` is the largest share of clean runs that may raise its alarm at any of `turns` looks."""

    def __init__(self, false_alarms: float, turns: int) -> None:
        self._z = NormalDist().inv_cdf(1 - false_alarms / max(1, turns))
        self._first: Gap | None = None
        self._told = False

    def look(self, gap: Gap) -> float | None:
        """The gap of the first turn if this gap is clearly wider, else None. A value is returned once: it is the alarm."""
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
    """The share and its variance: the largest variance that values in [0, 1] with this mean can have."""
    n = len(values) + 2
    share = (sum(values) + 1) / n
    return share, share * (1 - share) / n
