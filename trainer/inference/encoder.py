"""The layers of a BERT for many texts of equal lengths: the same products as its own classes, in fewer passes over memory.

Query, key and value are one product; oneDNN applies GELU and adds the residual while a product is still in the cache; the weights
are laid out for it once. In float32 the result equals that of the model's own classes except for the last digit or two.

Axes: B texts, T tokens, N = B x T, D numbers of a token, H heads.
"""

from typing import Any

import torch
from torch import Tensor
from torch.nn.functional import layer_norm

_EXPONENT = 50.0  # exp of up to this, and sums of it, are far from the ends of float32 and bfloat16


class Encoder:
    """Call it without gradients, for texts without padding. The weights are laid out for `rows` tokens of a call."""

    def __init__(self, model: Any, rows: int) -> None:
        self._embed, self._heads = model.embeddings, model.config.num_attention_heads
        self._layers = [_Layer(layer, self._heads, rows) for layer in model.encoder.layer]

    def __call__(self, tokens_BT: Tensor) -> Tensor:
        """The last layer, [B, T, D]."""
        x_BTD: Tensor = self._embed(input_ids=tokens_BT)
        x_ND = x_BTD.flatten(0, 1)
        for layer in self._layers:
            x_ND = layer(x_ND, *tokens_BT.shape)
        return x_ND.view_as(x_BTD)


class _Layer:
    def __init__(self, layer: Any, heads: int, rows: int) -> None:
        attention, self._heads = layer.attention, heads
        asked = [getattr(attention.self, name) for name in ("query", "key", "value")]
        weight, self._bias = (torch.cat([getattr(each, name) for each in asked]) for name in ("weight", "bias"))
        self._asked = _laid_out(weight, rows)
        self._out, self._norm = _linear(attention.output.dense, rows), attention.output.LayerNorm
        self._wide, self._narrow = _linear(layer.intermediate.dense, rows), _linear(layer.output.dense, rows)
        self._last = layer.output.LayerNorm

    def __call__(self, x_ND: Tensor, texts: int, length: int) -> Tensor:
        product = torch.ops.mkldnn._linear_pointwise
        asked_N3D = product(x_ND, self._asked, self._bias, "none", [], "")
        x_ND = _normed(self._norm, product.binary(self._attended(asked_N3D, texts, length), x_ND, *self._out, "add"))
        wide_NI = product(x_ND, *self._wide, "gelu", [], "none")
        return _normed(self._last, product.binary(wide_NI, x_ND, *self._narrow, "add"))

    def _attended(self, asked_N3D: Tensor, texts: int, length: int) -> Tensor:
        """Attention by plain products: torch's blockwise attention is made for long texts, and costs more on these, above all in bfloat16."""
        per_head = asked_N3D.shape[-1] // (3 * self._heads)
        parts = asked_N3D.view(texts, length, 3, self._heads, per_head).permute(2, 0, 3, 1, 4)
        query, key, value = parts.reshape(3, texts * self._heads, length, per_head)
        unused = query.new_zeros(1, 1, 1)
        scores = torch.baddbmm(unused, query, key.transpose(1, 2), beta=0, alpha=per_head**-0.5)
        found = _by_softmax(scores, value).view(texts, self._heads, length, per_head)
        return found.transpose(1, 2).reshape(texts * length, -1)


def _by_softmax(scores: Tensor, value: Tensor) -> Tensor:
    """softmax(scores) @ value. torch's own softmax takes the numbers of a short row one by one, as in short texts.

    Rows are divided by their sums after the product. Overwrites the scores.
    """
    if max(scores.amax(), -scores.amin()) > _EXPONENT:
        scores -= scores.amax(-1, keepdim=True)
    weights = scores.exp_()
    return torch.bmm(weights, value).div_(weights.sum(-1, keepdim=True))


def _normed(norm: Any, x_ND: Tensor) -> Tensor:
    return layer_norm(x_ND, norm.normalized_shape, norm.weight, norm.bias, norm.eps)


def _linear(layer: Any, rows: int) -> tuple[Tensor, Tensor]:
    return _laid_out(layer.weight, rows), layer.bias


def _laid_out(weight: Tensor, rows: int) -> Tensor:
    found: Tensor = torch.ops.mkldnn._reorder_linear_weight(weight.detach().contiguous(), rows)
    return found
