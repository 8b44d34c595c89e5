"""Which prompt gets how many of a step's rollouts (dynamic budget: LongCat-Flash-Thinking-2601, 2026, eq. 2)."""

import heapq
from collections.abc import Callable, Mapping, Sequence

from trainer.config.sections.budget import ValueName

Value = Callable[[float, int], float]


def learning_value(pass_rate: float, rollouts: int) -> float:
    """What one rollout more is worth: `p (1 - p) / ((n + 1) (n + 2))` after n rollouts (ours).

    That is by how much `p (1 - p) / (n + 1)`, the variance of a smoothed pass rate, falls with it. Prompts always or never
    solved are worth 0.
    """
    return _rounded(pass_rate * (1 - pass_rate) / ((rollouts + 1) * (rollouts + 2)))


def signal_value(pass_rate: float, rollouts: int) -> float:
    """`p^n (1 - p) + (1 - p)^n p` after n rollouts: by how much it becomes likelier that they are not all alike (ours).

    They are with probability `p^n + (1 - p)^n`. For n = 0 that formula is not a probability, and the value is that of n = 1.
    """
    n, q = max(rollouts, 1), 1 - pass_rate
    return _rounded(pass_rate**n * q + q**n * pass_rate)


def variance_value(pass_rate: float, rollouts: int) -> float:
    """`p (1 - p)`, whatever n: the prompts about which least is sure get all that they may have."""
    return _rounded(pass_rate * (1 - pass_rate))


VALUES: Mapping[ValueName, Value] = {
    "learning": learning_value,
    "signal": signal_value,
    "variance": variance_value,
}
LASTING: frozenset[ValueName] = frozenset({"learning"})
"""Those to which responses of earlier steps count: what was learned of the prompt lasts, a group does not."""


def _rounded(value: float) -> float:
    """To 12 digits: p and 1 - p, whose arithmetic differs by rounding, tie."""
    return float(f"{value:.12g}")


def allocate(
    pass_rates: Sequence[float],
    counts: Sequence[int],
    total: int,
    low: int,
    high: int,
    value: Value = learning_value,
) -> list[int]:
    """Rollouts of each prompt; they sum to `total`.

    Every prompt gets `low`. Each rollout that is left goes to the prompt where it is worth most, up to `high` for each;
    ties go to the lower index. `counts` are rollouts from before and count in a prompt's n. Raises ValueError, naming the
    argument, where the bounds leave no such allocation.
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
