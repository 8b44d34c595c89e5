"""Measures the importance of each key of a sweep: a one-way analysis of variance of the trials' values over groups of its values."""

from collections.abc import Sequence
from dataclasses import dataclass

import scipy

from . import space
from .space import SweepAxis

LEAST = 8  # trials with a value for every seed, below which nothing is said
GROUPS = 4  # of a range: this many groups of equally many trials


@dataclass(frozen=True)
class KeyWeight:
    """`share` of the variance between trials that the key's groups explain, corrected for their number (epsilon squared, Kelley 1935); `p`
    of the F test that the groups do not differ. None: `undefined` says why."""

    path: str
    share: float | None = None
    p: float | None = None
    undefined: str = ""


def weights(axes: Sequence[SweepAxis], trials: Sequence[tuple[space.Values, float]]) -> list[KeyWeight]:
    """`trials`: values and mean of each that has a value for every seed. The key with the largest share comes first."""
    found = [_weight(axis, [(values[axis.path], mean) for values, mean in trials]) for axis in axes]
    return sorted(found, key=lambda each: -1.0 if each.share is None else each.share, reverse=True)


def _weight(axis: SweepAxis, pairs: Sequence[tuple[space.Value, float]]) -> KeyWeight:
    if len(pairs) < LEAST:
        return KeyWeight(axis.path, undefined=f"needs {LEAST} trials with a value for every seed")
    groups = _groups(axis, pairs)
    n, k = len(pairs), len(groups)
    if k < 2 or n <= k:
        return KeyWeight(axis.path, undefined="too few trials have the same value")
    mean = sum(value for _, value in pairs) / n
    total = sum((value - mean) ** 2 for _, value in pairs)
    within = sum((value - sum(group) / len(group)) ** 2 for group in groups for value in group)
    if not total:
        return KeyWeight(axis.path, undefined="all trials have the same value")
    error = within / (n - k)
    share = max(0.0, (total - within - (k - 1) * error) / total)
    p = float(scipy.stats.f.sf((total - within) / (k - 1) / error, k - 1, n - k)) if error else 0.0
    return KeyWeight(axis.path, share, p)


def _groups(axis: SweepAxis, pairs: Sequence[tuple[space.Value, float]]) -> list[list[float]]:
    """The groups of trials by the value of a list; for a range, the trials in order, cut into equal groups."""
    if not axis.is_range:
        by: dict[str, list[float]] = {}
        for value, mean in pairs:
            by.setdefault(space.digest({"": value}), []).append(mean)
        return list(by.values())
    ranked = sorted(pairs, key=lambda pair: float(pair[0] or 0))
    n = len(ranked)
    cut = [ranked[n * i // GROUPS : n * (i + 1) // GROUPS] for i in range(GROUPS)]
    return [[mean for _, mean in group] for group in cut if group]
