"""Two judges, models or conditions on the same cases. Axes: C cases."""

from collections.abc import Hashable, Mapping, Sequence
from dataclasses import dataclass
from typing import TypeVar

import numpy as np
import scipy

from .estimate import BOOTSTRAP_DRAWS, SEED, Estimate, bootstrap_estimate, bootstrap_ratio, numbers, undefined_estimate

Key = TypeVar("Key", bound=Hashable)


def paired_difference(
    first_C: Sequence[float | bool | None],
    second_C: Sequence[float | bool | None],
    clusters: Sequence[object] | None = None,
) -> Estimate:
    """The mean of second - first over the cases that both have, with a paired bootstrap interval (Efron, 1979).

    Cases that one of them lacks are counted in `missing`. `clusters`: cases drawn together, such as one prompt's responses.
    """
    if len(first_C) != len(second_C):
        raise ValueError(f"{len(first_C)} values cannot be paired with {len(second_C)}")
    difference_C = numbers(second_C) - numbers(first_C)
    both_C = ~np.isnan(difference_C)
    kept = None if clusters is None else [cluster for cluster, both in zip(clusters, both_C, strict=True) if both]
    values_C = difference_C[both_C]
    missing = int((~both_C).sum())
    return bootstrap_ratio(
        values_C, np.ones(len(values_C)), clusters=kept, missing=missing, empty="no case has a value from both"
    )


def keyed_difference(first: Mapping[Key, float | bool | None], second: Mapping[Key, float | bool | None]) -> Estimate:
    """`paired_difference` of values by case; cases that only one of them holds are counted in `missing`."""
    keys = sorted(first.keys() | second.keys(), key=str)
    return paired_difference([first.get(key) for key in keys], [second.get(key) for key in keys])


def unpaired_difference(first_C: Sequence[float | None], second_C: Sequence[float | None]) -> Estimate:
    """The mean of second minus the mean of first, for independent cases: each side is resampled by itself
    (Efron, 1979). n counts both sides."""
    known = [values[~np.isnan(values)] for values in (numbers(first_C), numbers(second_C))]
    n = sum(map(len, known))
    missing = len(first_C) + len(second_C) - n
    if not all(map(len, known)):
        return undefined_estimate("a side has no value", n, missing)
    value = float(known[1].mean() - known[0].mean())
    if min(map(len, known)) == 1:
        return Estimate(value, n, missing=missing, interval="one case on a side has no spread")
    generator = np.random.default_rng(SEED)
    first_D, second_D = (generator.choice(each, (BOOTSTRAP_DRAWS, len(each))).mean(1) for each in known)
    return bootstrap_estimate(value, n, second_D - first_D, missing)


@dataclass(frozen=True)
class McNemar:
    """`p`: two-sided exact chance of a split at least as uneven among the `only_first + only_second` cases that decide.

    `p` is 1 if no case decides: two judges that are right on the same cases show no difference.
    """

    both: int
    only_first: int
    only_second: int
    neither: int
    p: float
    missing: int = 0


def mcnemar(first_C: Sequence[bool | None], second_C: Sequence[bool | None]) -> McNemar:
    """McNemar's exact test (1947) of two judges' right and wrong verdicts on the same cases.

    Cases that one of them lacks are left out and counted; if a missing verdict is wrong, pass False for it.
    """
    pairs = [(a, b) for a, b in zip(first_C, second_C, strict=True) if a is not None and b is not None]
    both, neither = sum(a and b for a, b in pairs), sum(not a and not b for a, b in pairs)
    only_first, only_second = sum(a and not b for a, b in pairs), sum(b and not a for a, b in pairs)
    deciding = only_first + only_second
    p = float(scipy.stats.binomtest(only_first, deciding, 0.5).pvalue) if deciding else 1.0
    return McNemar(both, only_first, only_second, neither, p, len(first_C) - len(pairs))
