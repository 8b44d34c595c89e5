"""Labels two samples of a prompt as chosen and rejected, and decides which pairs are kept: by a reward with a margin, or by a judge that
was asked in both orders.
"""

import math
from collections import Counter, defaultdict
from collections.abc import Sequence
from dataclasses import dataclass
from itertools import combinations
from typing import Any, Literal

from trainer.config.recipes.iterative_dpo import SampledPairs
from trainer.contracts import PartResult
from trainer.rewards.pairwise import Side, swap_consistent
from trainer.rollouts import Trajectory

Outcome = Literal["kept", "tie", "inconsistent", "missing", "equal"]
Two = tuple[Trajectory, Trajectory]
_SIDES: dict[str | None, Side | None] = {"first": "A", "second": "B", "tie": "tie", None: None}
_ROUNDING = 1e-9


@dataclass(frozen=True)
class Label:
    """The label of two samples. `first_won` and `lead` (by how much) have a meaning only if the outcome is `kept`.

    `places` are the places that the judge preferred with the pair in its own order and with the two swapped.
    """

    first: Trajectory
    second: Trajectory
    outcome: Outcome
    first_won: bool = False
    lead: float | None = None
    places: tuple[str | None, str | None] = (None, None)

    @property
    def better(self) -> Trajectory:
        return self.first if self.first_won else self.second

    @property
    def worse(self) -> Trajectory:
        return self.second if self.first_won else self.first


def draw(trajectories: Sequence[Trajectory], choose: str) -> list[Two]:
    """Pairs within each prompt's samples, in their order."""
    groups: dict[int, list[Trajectory]] = defaultdict(list)
    for trajectory in trajectories:
        groups[trajectory.plan.group].append(trajectory)
    return [pair for group in groups.values() for pair in _pairs(group, choose)]


def _pairs(group: Sequence[Trajectory], choose: str) -> list[Two]:
    if choose == "all":
        return list(combinations(group, 2))
    if choose == "neighbours":
        return list(zip(group[::2], group[1::2], strict=False))
    scored = [t for t in group if t.reward.total is not None]
    if len(scored) < 2:
        return [(group[0], group[1])]  # counted later as a pair without a label
    ordered = sorted(scored, key=lambda t: t.reward.total or 0.0)
    low, high = ordered[0], ordered[-1]
    return [(low, high) if low.plan.index < high.plan.index else (high, low)]


def equal(pair: Two) -> bool:
    """Whether both texts are the same. Such a pair is not shown to a judge."""
    return pair[0].text == pair[1].text


def by_reward(pair: Two, margin: float) -> Label:
    """The sample with the higher reward, if it leads by `margin`."""
    first, second = (t.reward.total for t in pair)
    if equal(pair):
        return Label(*pair, "equal")
    if first is None or second is None:
        return Label(*pair, "missing")
    lead = abs(first - second)
    if lead <= _ROUNDING or lead < margin - _ROUNDING:
        return Label(*pair, "tie")
    return Label(*pair, "kept", first > second, lead)


def by_judge(pair: Two, part: PartResult | None, labels: Literal["both_orders", "one_order"]) -> Label:
    """The label of a judge. `part` is what it said of the pair, about the first sample; None if it was not asked."""
    if equal(pair):
        return Label(*pair, "equal")
    shown: dict[str, Any] = part.shown if part and isinstance(part.shown, dict) else {}
    given, swapped = shown.get("places") or (None, None)
    places, strength = (given, swapped), shown.get("strength")
    side = _SIDES[given]
    if side is None or (labels == "both_orders" and swapped is None):
        return Label(*pair, "missing", places=places)
    if labels == "both_orders":
        side = swap_consistent(side, _SIDES[swapped])
    if side is None:
        return Label(*pair, "inconsistent", places=places)
    if side == "tie":
        return Label(*pair, "tie", places=places)
    lead = None if strength is None else strength if side == "A" else -strength
    return Label(*pair, "kept", side == "A", lead, places)


def label_metrics(labels: Sequence[Label], pairs: SampledPairs) -> dict[str, float]:
    """Shares and counts of a round's pairs. Undefined values are left out."""
    counts = Counter(label.outcome for label in labels)
    kept = [label for label in labels if label.outcome == "kept"]
    values = {
        "label/pairs": float(len(labels)),
        "label/kept": len(kept) / len(labels),
        "label/ties": float(counts["tie"]),
        "label/equal": float(counts["equal"]),
        "label/missing": float(counts["missing"]),
    }
    said = [place for label in labels for place in label.places if place is not None]
    if said:
        if pairs.labels == "both_orders":
            values["label/inconsistent"] = float(counts["inconsistent"])
        decided = [place == "first" for place in said if place != "tie"]
        values["label/first_share"] = sum(decided) / len(decided) if decided else math.nan
    leads = [label.lead for label in kept if label.lead is not None]
    values["label/margin"] = sum(leads) / len(leads) if leads else math.nan
    return values | _agreement(kept)


def _agreement(kept: Sequence[Label]) -> dict[str, float]:
    """For each part, the share of the pairs that it tells apart and orders as the label does."""
    agreed: dict[str, list[bool]] = defaultdict(list)
    for label in kept:
        better, worse = label.better.reward.components, label.worse.reward.components
        for name in better.keys() & worse.keys():
            if abs(better[name] - worse[name]) > _ROUNDING:
                agreed[name].append(better[name] > worse[name])
    values: dict[str, float] = {}
    for name in sorted(agreed):
        values[f"label/agreement/{name}"] = sum(agreed[name]) / len(agreed[name])
        values[f"label/agreement_pairs/{name}"] = float(len(agreed[name]))
    return values
