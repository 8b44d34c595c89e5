"""GRPO, Dr.GRPO and DAPO: one loss, three sets of defaults. GSPO: the same clip on the ratio of whole responses."""

import torch
from torch import Tensor

from trainer.config.objectives.knobs import GrpoParameters, GspoParameters

from .. import terms
from ..batch import ObjectiveBatch, ObjectiveResult


def grpo(batch: ObjectiveBatch, params: GrpoParameters) -> ObjectiveResult:
    """-aggregate[ w min(rho A, clip(rho, 1 - eps_low, 1 + eps_high) A) - kl_beta k3 ], rho = pi / pi_old per token.

    GRPO (DeepSeekMath, 2024) with aggregation `sequence` and `group_std` advantages; Dr.GRPO (Liu et al., 2025) with
    `constant` and `centred`; DAPO (Yu et al., 2025) with `token` and eps_high > eps_low. w = 1, or with `decoupled` the
    constant pi_old / pi_roll (AReaL: Fu et al., 2025), at most `weight_cap`, by default
    2 (truncated importance sampling: Yao et al., 2025). The KL term is not weighted by w. With `dual_clip` = c, off by default
    and 3 in its paper, the clipped gain of a negative advantage is at least c A (Ye et al., 2020).

    Needs logp_old, advantages; logp_ref if kl_beta > 0, logp_roll if decoupled.
    """
    return _clipped(batch, params, batch.logp - batch.need("logp_old_BT"))


def gspo(batch: ObjectiveBatch, params: GspoParameters) -> ObjectiveResult:
    """GRPO's loss with the sequence ratio s_i = exp(mean_t log(pi / pi_old)) (Zheng et al., 2025).

    Aggregation `sequence` gives -(1/B) sum_i min(s_i A_i, clip(s_i) A_i); the others count s_i's term once per token.
    """
    return _clipped(batch, params, terms.sequence_log_ratio(batch.logp, batch.need("logp_old_BT"), batch.mask_BT))


def _clipped(batch: ObjectiveBatch, params: GrpoParameters, log_rho: Tensor) -> ObjectiveResult:
    """The clipped loss for a log-ratio of shape (B, T) or (B, 1)."""
    advantages = batch.need("advantages_B")[:, None]
    gain, cut = terms.clipped_gain(log_rho, advantages, params.eps_low, params.eps_high, dual=params.dual_clip)
    weight = torch.ones_like(batch.mask_BT)
    if params.decoupled:
        weight = terms.ratio(batch.need("logp_old_BT"), batch.need("logp_roll_BT")).clamp(max=params.weight_cap)
    values = weight * gain
    rho = torch.exp(log_rho.detach())
    report = terms.diagnose(batch, rho, ~cut, cut)
    if params.kl_beta > 0:
        kl = terms.k3(batch.logp, batch.need("logp_ref_BT"))
        values = values - params.kl_beta * kl
        report["kl"] = terms.masked_mean(kl.detach(), batch.mask_BT)
    loss = -terms.aggregate(values, batch, params.aggregation, params.max_tokens)
    return ObjectiveResult(
        loss=loss,
        diagnostics=report,
        ratio=rho.expand_as(batch.mask_BT),
        weight=weight * ~cut * batch.mask_BT,
    )
