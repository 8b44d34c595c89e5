"""Draws the next token, with the log-probability of the drawn token.

Each request has its own uniforms, made from its seed, and a token is the inverse of the cumulative distribution at
the next uniform. So the draw of one row never depends on the other rows.
"""

from collections.abc import Sequence

import torch
from torch import Tensor

_NUCLEUS_FIRST = 1024


def uniforms(seeds: Sequence[int], draws: int) -> Tensor:
    """Uniform numbers [B, draws] in float32; row b depends on seed b alone."""
    generator = torch.Generator()
    rows = [torch.rand(draws, generator=generator.manual_seed(seed)) for seed in seeds]
    return torch.stack(rows)


def draw_tokens(logits_BV: Tensor, uniforms_B: Tensor, temperature: float, top_p: float) -> tuple[Tensor, Tensor]:
    """Tokens [B] and their log-probabilities [B] under the distribution they were drawn from.

    `temperature` 0 takes the most likely token (the lowest id among equals), whose log-probability is then 0.
    """
    if temperature == 0:
        tokens_B = logits_BV.argmax(-1)
        return tokens_B, torch.zeros_like(logits_BV[:, 0])
    scaled_BV = logits_BV / temperature
    if top_p < 1:
        return _draw_nucleus(scaled_BV, uniforms_B, top_p)
    probabilities_BV = torch.softmax(scaled_BV, dim=-1)
    tokens_B = _invert(probabilities_BV, uniforms_B)
    return tokens_B, probabilities_BV.gather(-1, tokens_B[:, None])[:, 0].log()


def nucleus_log_probs(probabilities_BV: Tensor, tokens_B: Tensor, top_p: float) -> Tensor:
    """Log-probabilities [B] of these tokens when drawn from the smallest set that holds at least `top_p`; -inf outside the set."""
    top, ids = _most_likely(probabilities_BV)
    found_B = _kept_of(tokens_B, _cut(top, top_p), ids)
    wide_B = top.sum(-1) < top_p
    if bool(wide_B.any()):  # only these rows: a few in a hundred need it, and sorting all takes most of a pass
        top, ids = probabilities_BV[wide_B].sort(dim=-1, descending=True)
        found_B[wide_B] = _kept_of(tokens_B[wide_B], _cut(top, top_p), ids)
    return found_B.log()


def _kept_of(tokens_B: Tensor, kept_BN: Tensor, ids_BN: Tensor) -> Tensor:
    return torch.where(ids_BN == tokens_B[:, None], kept_BN, 0.0).sum(-1)


def _most_likely(probabilities_BV: Tensor) -> tuple[Tensor, Tensor]:
    # Sorting the whole vocabulary costs more than the forward pass of a small model, and the nucleus is rarely so wide.
    return probabilities_BV.topk(min(_NUCLEUS_FIRST, probabilities_BV.shape[-1]), dim=-1)


def _cut(top_BN: Tensor, top_p: float) -> Tensor:
    before = top_BN.cumsum(-1) - top_BN
    kept = torch.where(before < top_p, top_BN, torch.zeros_like(top_BN))
    return kept / kept.sum(-1, keepdim=True)


def _draw_nucleus(scaled_BV: Tensor, uniforms_B: Tensor, top_p: float) -> tuple[Tensor, Tensor]:
    probabilities_BV = torch.softmax(scaled_BV, dim=-1)
    top, ids = _most_likely(probabilities_BV)
    tokens_B, logprobs_B = _draw_sorted(_cut(top, top_p), ids, uniforms_B)
    wide_B = top.sum(-1) < top_p
    if bool(wide_B.any()):  # only these rows: sums over the others would round differently
        top, ids = probabilities_BV[wide_B].sort(dim=-1, descending=True)
        tokens_B[wide_B], logprobs_B[wide_B] = _draw_sorted(_cut(top, top_p), ids, uniforms_B[wide_B])
    return tokens_B, logprobs_B


def _draw_sorted(kept: Tensor, ids: Tensor, uniforms_B: Tensor) -> tuple[Tensor, Tensor]:
    places_B = _invert(kept, uniforms_B)[:, None]
    return ids.gather(-1, places_B)[:, 0], kept.gather(-1, places_B)[:, 0].log()


def _invert(probabilities_BN: Tensor, uniforms_B: Tensor) -> Tensor:
    cumulative_BN = probabilities_BN.cumsum(-1)
    # Rounding leaves the last sum slightly off 1. Targets stay below it, so that the first sum above a target belongs to
    # a token of positive probability, for every uniform.
    totals_B = cumulative_BN[:, -1]
    targets_B = torch.minimum(uniforms_B * totals_B, torch.nextafter(totals_B, torch.zeros_like(totals_B)))
    found_B = torch.searchsorted(cumulative_BN, targets_B[:, None], right=True)[:, 0]
    # Diverged weights give NaN, for which there is no place. The token then has the log-probability NaN, and
    # the update reports it. An index that is too large would report nothing, and on a GPU it would end the process.
    return found_B.clamp(max=probabilities_BN.shape[-1] - 1)
