"""Objectives that weight by the mismatch between trainer and sampler: IcePop, MISC, on-policy distillation."""

import torch
from torch import Tensor

from trainer.config.objectives.knobs import DistillParameters, IcepopParameters, MiscParameters, PoppedClip

from .. import terms
from ..batch import ObjectiveBatch, ObjectiveResult


def icepop(batch: ObjectiveBatch, params: IcepopParameters) -> ObjectiveResult:
    """-aggregate[ M(k) min(rho A, clip(rho) A) ], rho = pi / pi_old, k = pi_old / pi_roll (IcePop in GLM-5, 2026).

    M is `terms.pop`: 0 outside [pop_low, pop_high], bounds included; inside 1 (`mask`) or k (`weight`, ERNIE 5.0, 2026).
    Tokens of weight 0 stay in |y| and in every other divisor. No KL term.
    `level` "sequence" is ERNIE's failing baseline: s_i for rho, and M of (pi_old(y) / pi_roll(y))^(1/|y|).

    Needs logp_old, logp_roll, advantages.
    """
    old, roll = batch.need("logp_old_BT"), batch.need("logp_roll_BT")
    if params.level == "sequence":
        log_rho = terms.sequence_log_ratio(batch.logp, old, batch.mask_BT)
        k = torch.exp(terms.sequence_log_ratio(old, roll, batch.mask_BT))
    else:
        log_rho, k = batch.logp - old, terms.ratio(old, roll)
    return _popped(batch, params, log_rho, k, batch.need("advantages_B")[:, None])


def distill(batch: ObjectiveBatch, params: DistillParameters) -> ObjectiveResult:
    """IcePop with A_t = stop-gradient[log pi_teacher(y_t) - log pi(y_t)] per token (cross-stage, GLM-5, 2026).

    The student in A_t is the policy being trained, at its current weights. Needs logp_old, logp_roll, logp_teacher;
    no rewards. `advantages_B` may mark responses as excluded (NaN); its other values are not read.
    """
    old, roll = batch.need("logp_old_BT"), batch.need("logp_roll_BT")
    advantages = batch.need("logp_teacher_BT") - batch.logp.detach()
    result = _popped(batch, params, batch.logp - old, terms.ratio(old, roll), advantages)
    # The mean of -A_t over tokens of the student is the usual one-sample estimate of KL(student || teacher).
    report = result.diagnostics | {"kl_teacher": terms.masked_mean(-advantages, batch.mask_BT)}
    return ObjectiveResult(result.loss, report, result.ratio, result.weight, advantages)


def misc(batch: ObjectiveBatch, params: MiscParameters) -> ObjectiveResult:
    """-(1/B) sum_i [mean_j M(k_ij)] min(s_i A_i, clip(s_i) A_i) (multi-granularity clipping: ERNIE 5.0, 2026, eq. 3).

    s_i is GSPO's sequence ratio, M(k_ij) IcePop's token weights, constants. The gradient of token j is the weights' mean
    times s_i A_i / |y_i|, the same for all tokens. With `token_gradient` it is M_j s_i A_i / |y_i| at the same value:
    s_i is replaced by stop-gradient[s_i] pi / stop-gradient[pi].

    Needs logp_old, logp_roll, advantages.
    """
    old, mask = batch.need("logp_old_BT"), batch.mask_BT
    weights = terms.pop(terms.ratio(old, batch.need("logp_roll_BT")), *params.pop_bounds, params.pop_mode)
    log_s = terms.sequence_log_ratio(batch.logp, old, mask)
    if params.token_gradient:
        log_rho, factor = log_s.detach() + (batch.logp - batch.logp.detach()), weights
    else:
        log_rho, factor = log_s, (weights * mask).sum(-1, keepdim=True) / mask.sum(-1, keepdim=True).clamp(min=1.0)
    advantages = batch.need("advantages_B")[:, None]
    gain, cut = terms.clipped_gain(log_rho, advantages, params.eps_low, params.eps_high, factor)
    loss = -terms.aggregate(gain.expand_as(mask), batch, params.aggregation, params.max_tokens)
    s = torch.exp(log_s.detach())
    report = terms.diagnose(batch, s, (factor != 0) & ~cut, cut, weights)
    return ObjectiveResult(loss, report, s.expand_as(mask), (factor * ~cut) * mask)


def _popped(
    batch: ObjectiveBatch, params: PoppedClip, log_rho: Tensor, k: Tensor, advantages: Tensor
) -> ObjectiveResult:
    """The loss for log-ratios and mismatches of shape (B, T) or (B, 1) and advantages of shape (B, 1) or (B, T)."""
    weights = terms.pop(k, *params.pop_bounds, params.pop_mode)
    gain, cut = terms.clipped_gain(log_rho, advantages, params.eps_low, params.eps_high, weights)
    mask = batch.mask_BT
    loss = -terms.aggregate(gain.expand_as(mask), batch, params.aggregation, params.max_tokens)
    rho = torch.exp(log_rho.detach())
    report = terms.diagnose(batch, rho, (weights != 0) & ~cut, cut, weights)
    return ObjectiveResult(loss, report, rho.expand_as(mask), (weights * ~cut) * mask)
