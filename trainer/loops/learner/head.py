"""Log-probabilities and entropies from hidden states, a block of rows at a time: M x V logits never exist at once.

Axes: M tokens to predict, D hidden, V vocabulary, R rows of one block. Arithmetic after the logits is float32, or
float64 if the model is.
"""

from collections.abc import Iterator
from typing import Any

import torch
from torch import Tensor

from trainer.inference.draw import nucleus_log_probs
from trainer.inference.products import product

_ROWS = 256
_ROWS_ON_GPU = 2048


class _FrozenHead(torch.autograd.Function):
    """The gradient flows to the hidden states only.

    d logp / dh = (W[token] - softmax @ W) / tau is computed in the forward pass, while the logits of a block are at hand.
    """

    @staticmethod
    def forward(ctx: Any, hidden_MD: Tensor, weight_VD: Tensor, tokens_M: Tensor, temperature: float) -> Any:
        logp, entropy, slope = [], [], []
        for rows in _blocks(tokens_M):
            logits_RV = _logits(hidden_MD[rows], weight_VD, temperature)
            exps_RV, sums_R1, logp_R, entropy_R, _ = _distribution(logits_RV, tokens_M[rows])
            logp.append(logp_R)
            entropy.append(entropy_R)
            # Divided after the product, which is narrower: V is some hundred times D.
            expected_RD = (product(exps_RV.to(weight_VD.dtype), weight_VD.T) / sums_R1).to(weight_VD.dtype)
            slope.append((weight_VD[tokens_M[rows]] - expected_RD) / temperature)
        entropy_M = torch.cat(entropy)
        ctx.save_for_backward(torch.cat(slope))
        ctx.mark_non_differentiable(entropy_M)
        return torch.cat(logp), entropy_M

    @staticmethod
    def backward(ctx: Any, *gradients: Any) -> Any:
        (slope_MD,) = ctx.saved_tensors
        return gradients[0][:, None].to(slope_MD.dtype) * slope_MD, None, None, None


class _TrainedHead(torch.autograd.Function):
    """The gradient flows to hidden states and head. The backward pass computes each block's logits a second time.

    With g = d loss / d logp: d loss / d logits = g (onehot(token) - softmax) / tau.
    """

    @staticmethod
    def forward(ctx: Any, hidden_MD: Tensor, weight_VD: Tensor, tokens_M: Tensor, temperature: float) -> Any:
        logp_M, entropy_M, normaliser_M = _without_gradient(hidden_MD, weight_VD, tokens_M, temperature)
        ctx.save_for_backward(hidden_MD, weight_VD, tokens_M, normaliser_M)
        ctx.temperature = temperature
        ctx.mark_non_differentiable(entropy_M)
        return logp_M, entropy_M

    @staticmethod
    def backward(ctx: Any, *gradients: Any) -> Any:
        hidden_MD, weight_VD, tokens_M, normaliser_M = ctx.saved_tensors
        scale_M = gradients[0] / ctx.temperature
        hidden_grad_MD = torch.empty_like(hidden_MD)
        # In the width of the sums, so that adding up blocks of a bfloat16 head loses nothing.
        weight_grad_VD = torch.zeros_like(weight_VD, dtype=normaliser_M.dtype)
        for rows in _blocks(tokens_M):
            logits_RV = _logits(hidden_MD[rows], weight_VD, ctx.temperature)
            slope_RV = logits_RV.sub_(normaliser_M[rows, None]).exp_().neg_()
            slope_RV.scatter_add_(-1, tokens_M[rows, None], torch.ones_like(scale_M[rows, None]))
            slope_RV = slope_RV.mul_(scale_M[rows, None]).to(weight_VD.dtype)
            hidden_grad_MD[rows] = product(slope_RV, weight_VD.T)
            weight_grad_VD += slope_RV.T @ hidden_MD[rows]
        return hidden_grad_MD, weight_grad_VD.to(weight_VD.dtype), None, None


def log_probs(hidden_MD: Tensor, weight_VD: Tensor, tokens_M: Tensor, temperature: float) -> tuple[Tensor, Tensor]:
    """(log pi(token) [M], entropy of the full distribution [M]), both of softmax(h W^T / temperature).

    Only the first carries a gradient.
    """
    if torch.is_grad_enabled() and (hidden_MD.requires_grad or weight_VD.requires_grad):
        head = _TrainedHead if weight_VD.requires_grad else _FrozenHead
        logp_M, entropy_M = head.apply(hidden_MD, weight_VD, tokens_M, temperature)  # type: ignore[no-untyped-call]  # torch leaves it so
        return logp_M, entropy_M
    logp_M, entropy_M, _ = _without_gradient(hidden_MD, weight_VD, tokens_M, temperature)
    return logp_M, entropy_M


@torch.no_grad()
def reverse_kl(
    hidden_MD: Tensor, head_VD: Tensor, other_ME: Tensor, other_head_VE: Tensor, temperature: float
) -> Tensor:
    """KL(pi || other) [M] over the whole vocabulary, from the hidden states and heads of two models of one vocabulary.

    A head may have rows at its end that belong to no token; they are left out.
    """
    tokens, parts = min(len(head_VD), len(other_head_VE)), []
    for rows in _blocks(hidden_MD):
        logp_RV = _logits(hidden_MD[rows], head_VD[:tokens], temperature).log_softmax(-1)
        other_RV = _logits(other_ME[rows], other_head_VE[:tokens], temperature).log_softmax(-1)
        parts.append((logp_RV.exp() * (logp_RV - other_RV)).sum(-1).clamp_(min=0.0))
    return torch.cat(parts)


@torch.no_grad()
def sampled_log_probs(
    hidden_MD: Tensor, weight_VD: Tensor, tokens_M: Tensor, temperature: float, top_p: float
) -> Tensor:
    """Log-probabilities [M] under the distribution that a sampler draws from: temperature, then nucleus; -inf outside the nucleus."""
    if top_p >= 1:
        return _without_gradient(hidden_MD, weight_VD, tokens_M, temperature)[0]
    parts = []
    for rows in _blocks(tokens_M):
        probabilities_RV = _logits(hidden_MD[rows], weight_VD, temperature).softmax(-1)
        parts.append(nucleus_log_probs(probabilities_RV, tokens_M[rows], top_p))
    return torch.cat(parts)


@torch.no_grad()
def _without_gradient(
    hidden_MD: Tensor, weight_VD: Tensor, tokens_M: Tensor, temperature: float
) -> tuple[Tensor, Tensor, Tensor]:
    """(log-probability of the tokens, entropy, logsumexp of logits / temperature), [M] each."""
    parts = [
        _distribution(_logits(hidden_MD[rows], weight_VD, temperature), tokens_M[rows])[2:]
        for rows in _blocks(tokens_M)
    ]
    logp_M, entropy_M, normaliser_M = (torch.cat(column) for column in zip(*parts, strict=True))
    return logp_M, entropy_M, normaliser_M


def _blocks(tokens_M: Tensor) -> Iterator[slice]:
    size = _ROWS if tokens_M.device.type == "cpu" else _ROWS_ON_GPU
    for start in range(0, len(tokens_M), size):
        yield slice(start, start + size)


def _logits(hidden_RD: Tensor, weight_VD: Tensor, temperature: float) -> Tensor:
    """The logits [R, V], a fresh tensor that may be overwritten."""
    wide = torch.promote_types(hidden_RD.dtype, torch.float32)
    logits_RV = product(hidden_RD, weight_VD).to(wide)
    return logits_RV if temperature == 1.0 else logits_RV.div_(temperature)


def _distribution(logits_RV: Tensor, tokens_R: Tensor) -> tuple[Tensor, Tensor, Tensor, Tensor, Tensor]:
    """Exponentials [R, V] and their sums [R, 1], whose quotient is the softmax; then log-probability of the tokens, entropy and
    logsumexp, [R] each. Overwrites the logits.

    Memory bounds passes over [R, V], so there are as few as possible: numbers are divided while they are narrow.
    """
    largest_R1 = logits_RV.amax(-1, keepdim=True)
    shifted_RV = logits_RV.sub_(largest_R1)
    exps_RV = shifted_RV.exp()
    sums_R1 = exps_RV.sum(-1, keepdim=True)
    log_sums_R1 = sums_R1.log()
    logp_R1 = shifted_RV.gather(-1, tokens_R[:, None]) - log_sums_R1
    # H = log Z - sum p (logit - largest); bmm instead of a product and a sum, which would make one more [R, V].
    entropy_R1 = log_sums_R1 - torch.bmm(exps_RV[:, None, :], shifted_RV[:, :, None])[:, 0] / sums_R1
    return exps_RV, sums_R1, logp_R1[:, 0], entropy_R1[:, 0], (largest_R1 + log_sums_R1)[:, 0]
