"""A measure beside the reward that is not trained on: does it still follow the reward?

The panel is a shadow part of the reward: another judge, a judge that sees no rubric, a reward model, a verifier. An
optimiser that finds a fault of the reward raises the reward and not the panel (Gao, Schulman and Hilton, 2023, Scaling
Laws for Reward Model Overoptimization).
"""

from collections.abc import Sequence
from dataclasses import dataclass

Pairs = Sequence[tuple[float, float]]
"""(reward, panel) of the responses to one prompt."""


@dataclass
class FittedLine:
    """The value that the panel is expected to give a response with this reward: `intercept + slope * reward`, at most `most`.

    The slope is that within groups of the baseline, or 0 if that is negative. A noisy panel makes the slope too flat, so that too
    little is expected; this raises no alarm. `most` is the highest value that the panel has given, because the panel may have a ceiling
    that the reward lacks.
    """

    intercept: float
    slope: float
    most: float

    @classmethod
    def fitted(cls, groups: Sequence[Pairs]) -> "FittedLine":
        """The line through the groups of a baseline, with one response at least."""
        rows = [pair for group in groups for pair in group]
        reward, panel = _means(rows)
        together = spread = 0.0
        for group in groups:
            middle_r, middle_p = _means(group)
            together += sum((r - middle_r) * (p - middle_p) for r, p in group)
            spread += sum((r - middle_r) ** 2 for r, _ in group)
        slope = max(0.0, together / spread) if spread > 0 else 0.0
        return cls(panel - slope * reward, slope, max(p for _, p in rows))

    def shortfall(self, reward: float, panel: float) -> float:
        """The distance of the panel below its expected value."""
        self.most = max(self.most, panel)
        return min(self.most, self.intercept + self.slope * reward) - panel


def _means(pairs: Pairs) -> tuple[float, float]:
    return sum(r for r, _ in pairs) / len(pairs), sum(p for _, p in pairs) / len(pairs)
