"""Objectives that compare with the sampler directly and need no pass of the old policy: double-sided IS, Kimi, OAPL."""

import torch
from torch import Tensor

from trainer.config.objectives.knobs import DoubleSidedParameters, KimiParameters, OaplParameters

from .. import terms
from ..batch import ObjectiveBatch, ObjectiveResult


def double_sided(batch: ObjectiveBatch, params: DoubleSidedParameters) -> ObjectiveResult:
    """-aggregate[ f(r) A log pi ], r = pi / pi_roll, f(r) = r if 1 - eps_low < r < 1 + eps_high else 0 (GLM-5, 2026).

    f(r) is a constant; the interval is open; dropped tokens stay in the divisor. Needs logp_roll, advantages.
    """
    r = terms.ratio(batch.logp, batch.need("logp_roll_BT")).detach()
    inside = terms.above(r, 1.0 - params.eps_low) & terms.below(r, 1.0 + params.eps_high)
    factor = torch.where(inside, r, torch.zeros_like(r))
    values = factor * batch.need("advantages_B")[:, None] * batch.logp
    loss = -terms.aggregate(values, batch, params.aggregation, params.max_tokens)
    return ObjectiveResult(loss, terms.diagnose(batch, r, inside, ~inside), r, factor * batch.mask_BT)


def kimi(batch: ObjectiveBatch, params: KimiParameters) -> ObjectiveResult:
    """-mean over prompts of (1/N) sum over tokens [ Clip(rho, alpha, beta) A - tau (log rho)^2 ] (Kimi K2.5, 2026).

    rho = pi / pi_roll, A = r - mean r, N the tokens of all responses to the prompt, also of those in other mini-batches. Clip is a value clip on rho itself,
    bounds included, for either sign of A: outside, only the tau term has a gradient. The paper's pi_old is the
    sampler's policy; if logp_roll was not recorded, logp_old replaces it.
    """
    sampler = batch.need("logp_roll_BT" if batch.logp_roll_BT is not None else "logp_old_BT")
    log_rho = batch.logp - sampler
    rho = torch.exp(log_rho.detach())
    inside = ~(terms.below(rho, params.alpha) | terms.above(rho, params.beta))
    # Ratios outside never reach the exponential that carries the gradient: if they overflowed, it would be 0 x inf.
    clipped = torch.where(inside, torch.exp(torch.where(inside, log_rho, 0.0)), rho.clamp(params.alpha, params.beta))
    values = clipped * batch.need("advantages_B")[:, None] - params.tau * log_rho**2
    loss = -(_sums(values, batch) / batch.need("group_tokens_B").clamp(min=1.0)).sum() / (batch.total_groups or 1.0)
    report = terms.diagnose(batch, rho, inside, ~inside)
    report["penalty"] = terms.masked_mean(log_rho.detach() ** 2, batch.mask_BT)
    return ObjectiveResult(loss, report, rho, inside * batch.mask_BT)


def oapl(batch: ObjectiveBatch, params: OaplParameters) -> ObjectiveResult:
    """mean over responses of (beta2 (log pi(y) - log pi_roll(y)) - (r - V))^2 with sums over tokens (OAPL, 2026, eq. 3).

    `advantages_B` is r - V (`advantages.optimal_advantage`). No ratio is optimised and nothing is clipped: a least-squares
    regression. A response without tokens adds the constant (r - V)^2. Needs logp_roll, advantages.
    """
    roll = batch.need("logp_roll_BT")
    log_ratio_B = _sums(batch.logp - roll, batch)
    residual_B = params.beta2 * log_ratio_B - batch.need("advantages_B")
    loss = (residual_B**2).sum() / (batch.total_sequences or 1.0)
    rho = terms.ratio(batch.logp.detach(), roll)
    report = terms.diagnose(batch, rho, torch.ones_like(rho, dtype=torch.bool))
    known_B = (batch.lengths_B > 0).to(batch.dtype)
    report["log_ratio"] = (log_ratio_B.detach() * known_B).sum() / known_B.sum()
    return ObjectiveResult(loss, report, rho, batch.mask_BT)


def _sums(values_BT: Tensor, batch: ObjectiveBatch) -> Tensor:
    """(B,) sums over each response's generated tokens."""
    return (values_BT * batch.mask_BT).sum(-1)
