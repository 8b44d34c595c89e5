"""Log-probabilities and entropies from hidden states, without keeping M x V numbers for the backward pass."""

from typing import Any

import torch
from torch import Tensor

_ROWS = 256


class _FrozenHead(torch.autograd.Function):
    """log softmax(h W^T / tau)[token] and its entropy; the gradient flows to h only.

    d logp / dh = (W[token] - softmax @ W) / tau is computed in the forward pass, while the logits of a block of rows are
    at hand. Memory is M x D instead of several times M x V.
    """

    @staticmethod
    def forward(ctx: Any, hidden_MD: Tensor, weight_VD: Tensor, tokens_M: Tensor, temperature: float) -> Any:
        logp, entropy, slope = [], [], []
        for rows in torch.arange(len(tokens_M)).split(_ROWS):
            logits = (hidden_MD[rows] @ weight_VD.T).float() / temperature
            probabilities, logp_rows, entropy_rows = _distribution(logits, tokens_M[rows])
            logp.append(logp_rows)
            entropy.append(entropy_rows)
            expected = probabilities.to(weight_VD.dtype) @ weight_VD
            slope.append((weight_VD[tokens_M[rows]] - expected) / temperature)
        entropy_M = torch.cat(entropy)
        ctx.save_for_backward(torch.cat(slope))
        ctx.mark_non_differentiable(entropy_M)
        return torch.cat(logp), entropy_M

    @staticmethod
    def backward(ctx: Any, *gradients: Any) -> Any:
        (slope_MD,) = ctx.saved_tensors
        return gradients[0][:, None].to(slope_MD.dtype) * slope_MD, None, None, None


def log_probs(hidden_MD: Tensor, weight_VD: Tensor, tokens_M: Tensor, temperature: float) -> tuple[Tensor, Tensor]:
    """(log pi(token) [M], entropy of the full distribution [M]), both of softmax(h W^T / temperature), in float32.

    Only the first carries a gradient. A head that is trained gets the plain computation.
    """
    if not torch.is_grad_enabled() or not (hidden_MD.requires_grad or weight_VD.requires_grad):
        return _without_gradient(hidden_MD, weight_VD, tokens_M, temperature)
    if not weight_VD.requires_grad:
        logp_M, entropy_M = _FrozenHead.apply(hidden_MD, weight_VD, tokens_M, temperature)
        return logp_M, entropy_M
    logits_MV = (hidden_MD @ weight_VD.T).float() / temperature
    with torch.no_grad():
        _, _, entropy_M = _distribution(logits_MV.detach(), tokens_M)
    chosen_M = logits_MV.gather(-1, tokens_M[:, None])[:, 0]
    return chosen_M - torch.logsumexp(logits_MV, dim=-1), entropy_M


def _without_gradient(
    hidden_MD: Tensor, weight_VD: Tensor, tokens_M: Tensor, temperature: float
) -> tuple[Tensor, Tensor]:
    parts = []
    for rows in torch.arange(len(tokens_M)).split(_ROWS):
        logits = (hidden_MD[rows] @ weight_VD.T).float() / temperature
        parts.append(_distribution(logits, tokens_M[rows])[1:])
    return torch.cat([logp for logp, _ in parts]), torch.cat([entropy for _, entropy in parts])


def _distribution(logits_MV: Tensor, tokens_M: Tensor) -> tuple[Tensor, Tensor, Tensor]:
    """(softmax, log-probability of the tokens, entropy = logsumexp - sum p logit)."""
    normaliser_M = torch.logsumexp(logits_MV, dim=-1)
    logp_M = logits_MV.gather(-1, tokens_M[:, None])[:, 0] - normaliser_M
    probabilities = (logits_MV - normaliser_M[:, None]).exp_()
    entropy_M = normaliser_M - torch.linalg.vecdot(probabilities, logits_MV)
    return probabilities, logp_M, entropy_M
