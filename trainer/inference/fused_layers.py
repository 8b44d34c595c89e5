"""Norms and attention layers of the known architectures in fewer passes over their tensors, forward and back.

transformers writes a norm and the rotation of queries and keys as a dozen operations each. Every one of them reads and writes
a tensor of all tokens, in a pass with gradients keeps it, and is called from Python, which while tokens are decoded takes longer
than the arithmetic does. Here a norm is one operation, or two tensors where gradients flow; a rotation is written in place, and
goes back as the rotation by the opposite angle.

Axes: N tokens, H heads, D width.
"""

from functools import partial
from typing import Any

import torch
from torch import Tensor, nn

from .attention import NAME, grouped_attention


def fuse_layers(model: nn.Module) -> None:
    """Let norms and attention layers of a known architecture compute in this way. Attention of another kind than by groups,
    and norms in another precision than float32, stay as transformers has them."""
    for part in model.modules():
        if "forward" in vars(part):
            continue
        if hasattr(part, "variance_epsilon"):
            part.forward = partial(_norm, part, part.forward)
        elif hasattr(part, "q_proj") and hasattr(part, "o_proj"):
            part.forward = partial(_attention, part, part.forward)


def _norm(layer: Any, stock: Any, x: Tensor) -> Tensor:
    if not x.dtype == layer.weight.dtype == torch.float32:
        found: Tensor = stock(x)
        return found
    if torch.is_grad_enabled() and (x.requires_grad or layer.weight.requires_grad):
        normed: Tensor = _Normed.apply(x, layer.weight, layer.variance_epsilon)  # type: ignore[no-untyped-call]  # torch leaves it so
        return normed
    return nn.functional.rms_norm(x, x.shape[-1:], layer.weight, layer.variance_epsilon)


class _Normed(torch.autograd.Function):
    """w x / sqrt(mean(x^2) + eps). Keeps x and one number a token."""

    @staticmethod
    def forward(ctx: Any, x: Tensor, weight_D: Tensor, epsilon: float) -> Tensor:
        scale = torch.rsqrt(x.pow(2).mean(-1, keepdim=True) + epsilon)
        ctx.save_for_backward(x, weight_D, scale)
        return (x * scale).mul_(weight_D)

    @staticmethod
    def backward(ctx: Any, *gradients: Any) -> Any:
        """With s the scale and g = w d loss / d out: d loss / dx = s g - x s^3 mean(g x)."""
        x, weight_D, scale = ctx.saved_tensors
        x_slope = weight_slope_D = None
        if ctx.needs_input_grad[1]:
            weight_slope_D = (gradients[0] * x).mul_(scale).flatten(0, -2).sum(0)
        if ctx.needs_input_grad[0]:
            x_slope = gradients[0] * weight_D
            together = torch.linalg.vecdot(x_slope, x).unsqueeze(-1)
            x_slope = x_slope.mul_(scale).addcmul_(x, together.mul_(scale.pow(3)).div_(-x.shape[-1]))
        return x_slope, weight_slope_D, None


def rotated(x: Tensor, cos: Tensor, sin: Tensor) -> Tensor:
    """x [..., H, D] turned by the angles of its positions, [..., 1, D]: dimension i with i + D/2, as in Llama."""
    if torch.is_grad_enabled() and x.requires_grad:
        found: Tensor = _Rotated.apply(x, cos, sin)  # type: ignore[no-untyped-call]  # torch leaves it so
        return found
    return _turned(x, cos, sin, 1.0)


class _Rotated(torch.autograd.Function):
    @staticmethod
    def forward(ctx: Any, x: Tensor, cos: Tensor, sin: Tensor) -> Tensor:
        ctx.save_for_backward(cos, sin)
        return _turned(x, cos, sin, 1.0)

    @staticmethod
    def backward(ctx: Any, *gradients: Any) -> Any:
        cos, sin = ctx.saved_tensors
        return _turned(gradients[0], cos, sin, -1.0), None, None


def _turned(x: Tensor, cos: Tensor, sin: Tensor, sign: float) -> Tensor:
    """Both halves of the angles are the same, so turning back is turning by the opposite of each."""
    half = x.shape[-1] // 2
    out = x * cos
    out[..., :half].addcmul_(x[..., half:], sin[..., :half], value=-sign)
    out[..., half:].addcmul_(x[..., :half], sin[..., half:], value=sign)
    return out


def _attention(
    layer: Any,
    stock: Any,
    hidden_states: Tensor,
    position_embeddings: tuple[Tensor, Tensor],
    attention_mask: Tensor | None = None,
    past_key_values: Any = None,
    tree: Any = None,
    **more: Any,
) -> tuple[Tensor, None]:
    if layer.config._attn_implementation != NAME:
        found: tuple[Tensor, None] = stock(
            hidden_states,
            position_embeddings=position_embeddings,
            attention_mask=attention_mask,
            past_key_values=past_key_values,
            **more,
        )
        return found
    shape = hidden_states.shape[:-1]
    query, key, value = (
        part(hidden_states).view(*shape, -1, layer.head_dim) for part in (layer.q_proj, layer.k_proj, layer.v_proj)
    )
    if hasattr(layer, "q_norm"):
        query, key = layer.q_norm(query), layer.k_norm(key)
    cos, sin = (each.unsqueeze(-2) for each in position_embeddings)
    query, key = rotated(query, cos, sin).transpose(1, 2), rotated(key, cos, sin).transpose(1, 2)
    value = value.transpose(1, 2)
    if past_key_values is not None:
        key, value = past_key_values.update(key, value, layer.layer_idx)
    out, _ = grouped_attention(layer, query, key, value, attention_mask, layer.scaling, tree)
    return layer.o_proj(out.reshape(*shape, -1)), None
