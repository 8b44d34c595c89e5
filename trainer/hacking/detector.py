"""A change detector with a budget of false alarms, and a test of whether the reward pays for what has changed.

Axes: G groups of a step (a group has the responses to one prompt), B responses of a step.
"""

import math
from collections.abc import Mapping, Sequence
from typing import Any

BETS = (0.25, 0.5, 0.9)
"""Bets, as shares of the largest bet: a small bet finds a small rise soonest, a large bet a large one."""
Z_UPPER = 1.6448536269514722
_LARGEST = 600.0  # of a logarithm: far beyond any threshold, and its exponential is still a float


def upper(mean: float, n: int, z: float = Z_UPPER) -> float:
    """The upper end of the Wilson score interval of a share over `n` cases (Wilson, 1927); by default one-sided, 95%."""
    centre = mean + z * z / (2 * n)
    spread = z * math.sqrt(mean * (1 - mean) / n + z * z / (4 * n * n))
    return min(1.0, (centre + spread) / (1 + z * z / n))


class Rise:
    """Whether a share has risen above `reference`: an e-detector of Shiryaev and Roberts.

    Each group g of a step gives a value x in [0, 1]. A bet b on a rise multiplies its capital by `1 + b (x - reference) /
    reference`. If the mean is at most `reference`, the expected capital does not grow, for any distribution (Waudby-Smith and Ramdas,
    2023). A new bet of 1 begins with each step: `R_t = (1 + R_t-1) * prod_g (...)`, the mean over `BETS`. While there is no
    change, `R_t - t` is at most a martingale, so that the chance of ever reaching A within n steps is at most n / A
    (Shin, Ramdas and Rinaldo, 2022, E-detectors). `level` is that A.

    The bound holds if the reference is not below the true share. `of` makes a reference from a baseline, which is an estimate:
    its upper 95% limit over groups, and `slack` on top. A drift within `slack` raises no alarm.
    """

    def __init__(self, reference: float, level: float, before: float = 0.0, usual: float | None = None) -> None:
        """`before` is the share of the baseline. A step above `usual` counts as part of the rise; by default `usual` is the reference."""
        if not 0 < reference < 1:
            raise ValueError(f"a reference lies between 0 and 1, not at {reference}")
        self.reference, self.level, self.before = reference, level, before
        self.usual = reference if usual is None else usual
        self.since: int | None = None
        """The first of the latest steps, without a gap, whose share was above the usual."""
        self.share = before
        self._log = [-math.inf] * len(BETS)

    @classmethod
    def of(cls, baseline_G: Sequence[float], level: float, slack: float) -> "Rise":
        """The detector for the values of the baseline's groups, one or more."""
        before = sum(baseline_G) / len(baseline_G)
        usual = upper(before, len(baseline_G))
        return cls(min(0.99, usual + slack), level, before, usual)

    def see(self, step: int, values_G: Sequence[float]) -> bool:
        """Take the values of one more step. True if the evidence has reached the level."""
        if not values_G:
            return self.risen
        self.share = sum(values_G) / len(values_G)
        if self.share <= self.usual:
            self.since = None
        elif self.since is None:
            self.since = step
        for place, bet in enumerate(BETS):
            gain = sum(math.log1p(bet * (x - self.reference) / self.reference) for x in values_G)
            grown = _log_add(0.0, self._log[place]) + gain
            self._log[place] = min(grown, _LARGEST)
        return self.risen

    @property
    def evidence(self) -> float:
        """log R_t."""
        largest = max(self._log)
        if largest == -math.inf:
            return largest
        return largest + math.log(sum(math.exp(each - largest) for each in self._log) / len(BETS))

    @property
    def risen(self) -> bool:
        return self.evidence >= math.log(self.level)

    def state_dict(self) -> dict[str, Any]:
        log = [None if each == -math.inf else each for each in self._log]
        told = {"reference": self.reference, "before": self.before, "usual": self.usual, "level": self.level}
        return told | {"since": self.since, "share": self.share, "log": log}

    @classmethod
    def from_state(cls, state: Mapping[str, Any]) -> "Rise":
        made = cls(state["reference"], state["level"], state["before"], state["usual"])
        made.since, made.share = state["since"], state["share"]
        made._log = [-math.inf if each is None else each for each in state["log"]]
        return made


class Payment:
    """Whether responses that have something earn more reward than the others of their group: a permutation test over groups.

    If the rewards of a group were assigned at random, `C = sum (x - mean x)(r - mean r)` would have mean 0 and variance
    `Sxx Srr / (n - 1)` (Pitman, 1937). `z` is the sum of C over groups, divided by the root of the sum of the variances. Old steps fade by
    `KEPT`. Fading alone does not change z: if all responses of a step have the same value, nothing is compared.
    """

    KEPT = 0.9

    def __init__(self, covariance: float = 0.0, variance: float = 0.0) -> None:
        self._covariance, self._variance = covariance, variance

    def see(self, groups: Sequence[tuple[Sequence[float], Sequence[float]]]) -> None:
        """Take the pairs (values, rewards) of the groups of one step."""
        self._covariance *= self.KEPT
        self._variance *= self.KEPT**2
        for values, rewards in groups:
            count = len(values)
            if count < 2:
                continue
            middle_x, middle_r = sum(values) / count, sum(rewards) / count
            xx = sum((x - middle_x) ** 2 for x in values)
            rr = sum((r - middle_r) ** 2 for r in rewards)
            together = sum((x - middle_x) * (r - middle_r) for x, r in zip(values, rewards, strict=True))
            self._covariance += together
            self._variance += xx * rr / (count - 1)

    @property
    def z(self) -> float | None:
        """The z so far; None if nothing could be compared yet."""
        return self._covariance / math.sqrt(self._variance) if self._variance > 0 else None

    def state_dict(self) -> list[float]:
        return [self._covariance, self._variance]


def _log_add(first: float, second: float) -> float:
    """log(exp(first) + exp(second))."""
    high, low = max(first, second), min(first, second)
    return high if low == -math.inf else high + math.log1p(math.exp(low - high))
