"""Shares the rollouts of a step among its prompts (dynamic budget: LongCat-Flash-Thinking-2601, 2026, eq. 2)."""

import heapq
from collections.abc import Callable, Mapping, Sequence

from trainer.config.sections.budget import ValueName

Value = Callable[[float, int], float]


def learning_value(pass_rate: float, rollouts: int) -> float:
    """The worth of one rollout more after n rollouts: `p (1 - p) / ((n + 1) (n + 2))` (ours).

    By this much one rollout more lowers `p (1 - p) / (n + 1)`, the variance of a smoothed pass rate. A prompt that is always or
    never solved is worth 0.
    """
    return _rounded(pass_rate * (1 - pass_rate) / ((rollouts + 1) * (rollouts + 2)))


def signal_value(pass_rate: float, rollouts: int) -> float:
    """By how much one rollout more lowers the probability that all outcomes of the group are alike: `p^n (1 - p) + (1 - p)^n p` (ours).

    After n rollouts all are alike with probability `p^n + (1 - p)^n`. For n = 0 this formula gives no probability, so the value is that of
    n = 1.
    """
    n, q = max(rollouts, 1), 1 - pass_rate
    return _rounded(pass_rate**n * q + q**n * pass_rate)


def variance_value(pass_rate: float, rollouts: int) -> float:
    """`p (1 - p)` for every n: the prompts whose outcome is least certain get as many rollouts as they may have."""
    return _rounded(pass_rate * (1 - pass_rate))


VALUES: Mapping[ValueName, Value] = {
    "learning": learning_value,
    "signal": signal_value,
    "variance": variance_value,
}
LASTING: frozenset[ValueName] = frozenset({"learning"})
"""The values for which responses of earlier steps count: what was learned of a prompt lasts, a group does not."""


def _rounded(value: float) -> float:
    """The value to 12 digits, so that p and 1 - p tie, whose arithmetic differs by rounding."""
    return float(f"{value:.12g}")


def allocate(
    pass_rates: Sequence[float],
    counts: Sequence[int],
    total: int,
    low: int,
    high: int,
    value: Value = learning_value,
) -> list[int]:
    """The number of rollouts of each prompt; the numbers sum to `total`.

    Every prompt gets `low`. Each rollout that is left goes to the prompt for which it is worth most, up to `high` for each prompt;
    if several tie, the lowest index gets it. `counts` are rollouts from before: they count in a prompt's n. Raises ValueError, naming
    the argument, if the bounds allow no such allocation.
    """
    n = len(pass_rates)
    if high < low:
        raise ValueError(f"high: {high} is below low, which is {low}")
    if not low * n <= total <= high * n:
        raise ValueError(
            f"total: {n} prompts with {low} to {high} rollouts each have {low * n} to {high * n}, not {total}"
        )
    given = [low] * n
    heap = [(-value(pass_rates[i], counts[i] + low), i) for i in range(n)] if low < high else []
    heapq.heapify(heap)
    for _ in range(total - low * n):
        _, i = heap[0]
        given[i] += 1
        if given[i] < high:
            heapq.heapreplace(heap, (-value(pass_rates[i], counts[i] + given[i]), i))
        else:
            heapq.heappop(heap)
    return given
