"""The terms of policy objectives: ratios, clips, pops, penalties, sums. Pure functions of tensors.

Ratios are taken in log space. Comparisons with a bound treat a ratio that equals it up to rounding as equal, so that
"inclusive" and "open" mean what they say although exp(log a - log b) is rarely a / b to the last bit.
"""

import torch
from torch import Tensor

from trainer.config.objectives.knobs import AggregationName

from .batch import ObjectiveBatch, ObjectiveError


def ratio(logp: Tensor, other: Tensor) -> Tensor:
    """exp(logp - other), elementwise."""
    return torch.exp(logp - other)


def sequence_log_ratio(logp_BT: Tensor, other_BT: Tensor, mask_BT: Tensor) -> Tensor:
    """(B, 1): mean over generated tokens of logp - other; 0 for a response without tokens."""
    total = ((logp_BT - other_BT) * mask_BT).sum(-1, keepdim=True)
    return total / mask_BT.sum(-1, keepdim=True).clamp(min=1.0)


def above(value: Tensor, bound: float) -> Tensor:
    """value > bound, by more than rounding."""
    return value > bound + _slack(value, bound)


def below(value: Tensor, bound: float) -> Tensor:
    """value < bound, by more than rounding."""
    return value < bound - _slack(value, bound)


def _slack(value: Tensor, bound: float) -> float:
    return (1e-12 if value.dtype == torch.float64 else 1e-6) * abs(bound)


def clipped_gain(
    log_rho: Tensor,
    advantages: Tensor,
    eps_low: float,
    eps_high: float,
    weights: Tensor | float = 1.0,
    dual: float | None = None,
) -> tuple[Tensor, Tensor]:
    """min(rho A, clip(rho, 1 - eps_low, 1 + eps_high) A) (PPO: Schulman et al., 2017), and where a clip decides.

    With `dual` = c, the gain of a negative advantage is at least c A (dual-clip PPO: Ye et al., 2020): a bad token that has become
    much more likely pushes no further. The gain is multiplied by the constant `weights`. On the bound itself the two are equal and the
    gradient is rho's. Shapes broadcast. A ratio that does not matter (clipped, A = 0 or weight 0) never reaches the exponential: if
    it overflowed, the gradient would be 0 x inf.
    """
    low, high = 1.0 - eps_low, 1.0 + eps_high
    rho = torch.exp(log_rho.detach())
    cut_high = above(rho, high) & (advantages > 0)
    cut_low = below(rho, low) & (advantages < 0)
    cut_far = above(rho, dual) & (advantages < 0) if dual is not None else torch.zeros_like(cut_low)
    cut = cut_high | cut_low | cut_far
    moot = cut | (advantages == 0) | (torch.as_tensor(weights) == 0)
    live = torch.exp(torch.where(moot, 0.0, log_rho)) * advantages
    if dual is not None:
        live = torch.where(cut_far, dual * advantages, live)
    return weights * torch.where(cut_high, high * advantages, torch.where(cut_low, low * advantages, live)), cut


def pop(k: Tensor, low: float, high: float, mode: str) -> Tensor:
    """IcePop's operator: 0 outside [low, high]; inside 1 (`mask`, GLM-5, 2026) or k (`weight`, ERNIE 5.0, 2026)."""
    inside = ~(below(k, low) | above(k, high))
    return torch.where(inside, k if mode == "weight" else torch.ones_like(k), torch.zeros_like(k))


def k3(logp: Tensor, ref: Tensor) -> Tensor:
    """exp(d) - d - 1 with d = ref - logp: unbiased, never negative estimate of KL(pi || ref) (Schulman, 2020)."""
    d = ref - logp
    return torch.exp(d) - d - 1.0


def aggregate(values_BT: Tensor, batch: ObjectiveBatch, how: AggregationName, max_tokens: int | None) -> Tensor:
    """One number from the tokens' values, by the totals of the step.

    `sequence`: mean over responses of the mean over a response's tokens (GRPO). `token`: mean over all tokens (DAPO,
    2025). `constant`: sum / (responses x max_tokens) (Dr.GRPO, 2025). A response without tokens adds 0.
    """
    sums_B = (values_BT * batch.mask_BT).sum(-1)
    sequences, tokens = batch.total_sequences or 1.0, batch.total_tokens or 1.0
    if how == "sequence":
        return (sums_B / batch.lengths_B.clamp(min=1.0)).sum() / sequences
    if how == "token":
        return sums_B.sum() / tokens
    if max_tokens is None:
        raise ObjectiveError("params.max_tokens", "needed with aggregation 'constant', which divides by it")
    return sums_B.sum() / (sequences * max_tokens)


def masked_mean(values_BT: Tensor, mask_BT: Tensor) -> Tensor:
    """The mean over values whose mask is not 0; NaN if there are none."""
    return torch.where(mask_BT != 0, values_BT * mask_BT, 0.0).sum() / mask_BT.sum()


def diagnose(
    batch: ObjectiveBatch, rho_BT: Tensor, kept_BT: Tensor, cut_BT: Tensor | None = None, pop_BT: Tensor | None = None
) -> dict[str, Tensor]:
    """The diagnostics of every policy objective. `kept` has a policy gradient; `cut` is clipped; `pop` is the mismatch weight.

    `ratio_raw` and `ratio_masked` are means of the optimised ratio over generated tokens, before and after cutting;
    `mismatch_*` are the same for trainer over sampler, if both were recorded. `kl_old` is the k3
    estimate of KL(pi || pi_old or pi_roll); `tokens` weights the means when micro-batches are combined.
    """
    mask, rho = batch.mask_BT, rho_BT.detach().expand_as(batch.mask_BT)
    kept = kept_BT.to(mask.dtype).expand_as(mask) * mask
    report = {
        "ratio_raw": masked_mean(rho, mask),
        "ratio_masked": masked_mean(rho, kept),
        "masked_share": 1.0 - kept.sum() / mask.sum(),
        "tokens": mask.sum(),
        "sequences": (batch.lengths_B > 0).sum().to(mask.dtype),
    }
    if cut_BT is not None:
        report["clip_share"] = masked_mean(cut_BT.to(mask.dtype).expand_as(mask), mask)
    if pop_BT is not None:
        report["pop_share"] = masked_mean((pop_BT.expand_as(mask) == 0).to(mask.dtype), mask)
    if batch.advantages_B is not None:
        report["excluded"] = torch.isnan(batch.advantages_B).sum().to(mask.dtype)
    old = batch.logp_old_BT if batch.logp_old_BT is not None else batch.logp_roll_BT
    if old is not None:
        report["kl_old"] = masked_mean(k3(batch.logp.detach(), torch.where(mask > 0, old.to(mask.dtype), 0.0)), mask)
    if batch.logp_roll_BT is not None and batch.logp_old_BT is not None:
        report |= _mismatch(batch.need("logp_old_BT"), batch.need("logp_roll_BT"), {"raw": mask, "masked": kept})
    return report


def _mismatch(old_BT: Tensor, roll_BT: Tensor, counted: dict[str, Tensor]) -> dict[str, Tensor]:
    """The mismatch of trainer and sampler. The mean ratio alone says little: it is 1 for any two distributions over the same tokens.
    `mismatch_kl` is the k3 estimate of KL(pi_roll || pi_old), `mismatch_far` the largest factor between the two for one token, in
    either direction; each by mask. NaN if nothing counts.
    """
    k, distance, far = ratio(old_BT, roll_BT), k3(roll_BT, old_BT), torch.exp((old_BT - roll_BT).abs())
    found = {}
    for name, mask_BT in counted.items():
        found[f"mismatch_{name}"] = masked_mean(k, mask_BT)
        found[f"mismatch_kl_{name}"] = masked_mean(distance, mask_BT)
        found[f"mismatch_far_{name}"] = far[mask_BT != 0].max() if bool(mask_BT.any()) else far.new_tensor(torch.nan)
    return found
