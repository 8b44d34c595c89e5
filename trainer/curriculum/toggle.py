"""Toggle (Kimi K2.5, 2026): phases that ask for short answers alternate with phases that leave the length free."""

import math
from collections.abc import Sequence

import numpy as np

CORRECT = 1.0  # the reward from which a response counts as correct
_ROUNDING = 1e-9


def toggle_budget(
    lengths: Sequence[int], rewards: Sequence[float | None], rho: float, correct: float = CORRECT
) -> float | None:
    """The number of tokens that a prompt's responses may have: the linear `rho`-quantile of the lengths of its correct responses.

    The budget is estimated once, at the start of the run. A response is correct if its reward is `correct` or more; a response
    without a reward is not. None if no response is correct: there is then no budget.
    """
    found = [
        length
        for length, reward in zip(lengths, rewards, strict=True)
        if reward is not None and reward >= correct - _ROUNDING
    ]
    return float(np.quantile(found, rho)) if found else None


def budget_phase(t: int, m: int) -> bool:
    """Whether iteration t (from 0) is in a budget phase: floor(t / m) is even, so the first m iterations are."""
    return t // m % 2 == 0


def toggle_rewards(
    rewards: Sequence[float | None], lengths: Sequence[int], budget: float | None, t: int, m: int, lam: float
) -> list[float | None]:
    """The rewards of a group at iteration t. In a budget phase, responses above the budget get 0.

    The budget is not enforced if the group's mean reward is below `lam` (it is at `lam`), if there is no budget, or
    outside a budget phase. A missing reward stays missing and is left out of the mean.
    """
    known = [reward for reward in rewards if reward is not None]
    if budget is None or not known or not budget_phase(t, m):
        return list(rewards)
    if math.fsum(known) / len(known) < lam - _ROUNDING:
        return list(rewards)
    most = budget + _ROUNDING * max(1.0, budget)
    return [
        reward if reward is None or length <= most else 0.0 for reward, length in zip(rewards, lengths, strict=True)
    ]
