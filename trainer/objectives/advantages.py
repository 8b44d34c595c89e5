"""Advantages: numbers made from the rewards of the responses to one prompt, by which the policy is updated.

All functions take `rewards_B` (NaN: missing, the response is excluded) and `groups_B` (prompt ids; None: one prompt) over whole
groups and give `advantages_B` in the dtype of the rewards, NaN for excluded responses. Statistics are taken over the
responses that have a reward, in float64.
"""

import torch
from torch import Tensor

from .batch import ObjectiveError

NAMES = ("group_std", "centred", "leave_one_out", "remax", "batch")


def estimate(
    name: str,
    rewards_B: Tensor,
    groups_B: Tensor | None = None,
    *,
    greedy_B: Tensor | None = None,
    ddof: int = 0,
    eps: float = 0.0,
) -> Tensor:
    """Advantages by the estimator `name`; `greedy_B` is for `remax`, `ddof` and `eps` for estimators that divide by a deviation."""
    match name:
        case "group_std":
            return group_std(rewards_B, groups_B, ddof=ddof, eps=eps)
        case "centred":
            return centred(rewards_B, groups_B)
        case "leave_one_out":
            return leave_one_out(rewards_B, groups_B)
        case "remax":
            if greedy_B is None:
                raise ObjectiveError("rewards_greedy", "missing; advantage 'remax' needs it")
            return remax(rewards_B, greedy_B)
        case "batch":
            return batch(rewards_B, groups_B, ddof=ddof, eps=eps)
    raise ObjectiveError("advantage", f"unknown estimator {name!r}; known: {', '.join(NAMES)}")


def group_std(rewards_B: Tensor, groups_B: Tensor | None = None, *, ddof: int = 0, eps: float = 0.0) -> Tensor:
    """A_i = (r_i - mean) / (std + eps) over the group (GRPO: DeepSeekMath, 2024).

    Population standard deviation and no eps by default; TRL's has ddof=1 and eps=1e-4. Rewards that are equal up to
    rounding, a group of one included, give 0: their deviation is noise.
    """
    rewards, group_B, count = _prepare(rewards_B, groups_B)
    out = torch.full_like(rewards, torch.nan)
    for g in range(count):
        members = _members(rewards, group_B, g)
        out[members] = _standardised(rewards[members], rewards[members], rewards_B.dtype, ddof, eps)
    return out.to(rewards_B.dtype)


def centred(rewards_B: Tensor, groups_B: Tensor | None = None) -> Tensor:
    """A_i = r_i - mean over the group (Dr.GRPO, 2025; Kimi K2.5, 2026; GLM-5, 2026)."""
    rewards, group_B, count = _prepare(rewards_B, groups_B)
    out = torch.full_like(rewards, torch.nan)
    for g in range(count):
        members = _members(rewards, group_B, g)
        out[members] = rewards[members] - rewards[members].mean()
    return out.to(rewards_B.dtype)


def leave_one_out(rewards_B: Tensor, groups_B: Tensor | None = None) -> Tensor:
    """A_i = r_i - mean of the group's other rewards (RLOO: Ahmadian et al., 2024).

    A group sampled with a single response is an error: it has no others. If all but one response of a larger group
    are missing, the remaining one is excluded too.
    """
    rewards, group_B, count = _prepare(rewards_B, groups_B)
    out = torch.full_like(rewards, torch.nan)
    for g in range(count):
        if int((group_B == g).sum()) == 1:
            row = int((group_B == g).nonzero()[0])
            raise ObjectiveError("groups", f"response {row} is alone in its group; leave_one_out needs at least two")
        members = _members(rewards, group_B, g)
        n = int(members.sum())
        if n > 1:
            r = rewards[members]
            out[members] = (r - r.mean()) * (n / (n - 1))
    return out.to(rewards_B.dtype)


def remax(rewards_B: Tensor, greedy_B: Tensor) -> Tensor:
    """A_i = r_i - r_greedy, the reward of the greedy response to the same prompt (ReMax: Li et al., 2024)."""
    if rewards_B.shape != greedy_B.shape:
        raise ObjectiveError("rewards_greedy", f"has {len(greedy_B)} values for {len(rewards_B)} responses")
    return rewards_B - greedy_B.to(rewards_B.dtype)


def batch(rewards_B: Tensor, groups_B: Tensor | None = None, *, ddof: int = 0, eps: float = 0.0) -> Tensor:
    """A_i = (r_i - mean over the group) / (std over the batch + eps) (Lite PPO: Liu et al., 2025; TRL's `batch`)."""
    rewards, _, _ = _prepare(rewards_B, groups_B)
    centred_B = centred(rewards, groups_B)
    known = ~torch.isnan(rewards)
    out = torch.full_like(rewards, torch.nan)
    out[known] = _standardised(rewards[known], centred_B[known], rewards_B.dtype, ddof, eps, centre=False)
    return out.to(rewards_B.dtype)


def optimal_advantage(rewards_B: Tensor, groups_B: Tensor | None = None, *, beta1: float = 1.0) -> Tensor:
    """A_i = r_i - V with V = beta1 log mean_i exp(r_i / beta1) over the group (OAPL, 2026, eq. 2).

    Written as V = m + beta1 log1p(mean expm1((r - m) / beta1)), m = max r: nothing overflows for small beta1, and for
    large beta1, where V tends to the mean, nothing cancels. beta1 = 0 is the limit V = max r.
    """
    rewards, group_B, count = _prepare(rewards_B, groups_B)
    out = torch.full_like(rewards, torch.nan)
    for g in range(count):
        members = _members(rewards, group_B, g)
        if members.any():
            out[members] = rewards[members] - soft_value(rewards[members], beta1)
    return out.to(rewards_B.dtype)


def soft_value(rewards_G: Tensor, beta1: float) -> Tensor:
    """V of one group; a scalar tensor. See `optimal_advantage`."""
    top = rewards_G.max()
    if beta1 == 0:
        return top
    return top + beta1 * torch.log1p(torch.expm1((rewards_G - top) / beta1).mean())


def _prepare(rewards_B: Tensor, groups_B: Tensor | None) -> tuple[Tensor, Tensor, int]:
    """Rewards in float64, groups renumbered from 0, and their number."""
    if rewards_B.dim() != 1:
        raise ObjectiveError("rewards", f"has shape {tuple(rewards_B.shape)}; expected one number per response")
    if groups_B is None:
        groups_B = torch.zeros(len(rewards_B), dtype=torch.long, device=rewards_B.device)
    if groups_B.shape != rewards_B.shape:
        raise ObjectiveError("groups", f"has {len(groups_B)} values for {len(rewards_B)} rewards")
    if torch.isinf(rewards_B).any():
        raise ObjectiveError("rewards", f"response {int(torch.isinf(rewards_B).nonzero()[0])} has an infinite reward")
    found, group_B = torch.unique(groups_B, return_inverse=True)
    return rewards_B.detach().to(torch.float64), group_B, len(found)


def _members(rewards: Tensor, group_B: Tensor, g: int) -> Tensor:
    return (group_B == g) & ~torch.isnan(rewards)


def _standardised(
    rewards: Tensor, values: Tensor, dtype: torch.dtype, ddof: int, eps: float, *, centre: bool = True
) -> Tensor:
    """values (minus their mean) over the deviation of `rewards`; 0 if the rewards differ only by rounding."""
    n = len(rewards)
    if n <= ddof or _equal(rewards, dtype):
        return torch.zeros_like(values)
    deviation = torch.sqrt(((rewards - rewards.mean()) ** 2).sum() / (n - ddof)) + eps
    return (values - values.mean() if centre else values) / deviation


def _equal(rewards: Tensor, dtype: torch.dtype) -> bool:
    """Whether the rewards differ by no more than sums in another order would. Rewards are of the order of 1."""
    tolerance = 1e-9 if dtype == torch.float64 else 1e-6
    spread = float(rewards.max() - rewards.min())
    return spread <= tolerance * max(1.0, float(rewards.abs().max()))
