"""Adapters added by the layer's own product, instead of in three more passes over the layer's output.

peft scales the output of an adapter and adds it to the layer's output: two tensors of the output's size, and one more in the backward
pass. Here the scaling happens between the two matrices of the adapter, with `rank` numbers a token, and the product itself adds, so no such
tensor is made. The gradient of the layer's input is added up in the same way.

On a layer in bfloat16, whose adapters are trained in float32, peft widens the layer's inputs and outputs, forward and backward. Here
the adapters, which are few numbers, are rounded to the precision of the layer, and gradients are widened once they are as small: as
for the weights of a model all of which is trained (`master_weights.py`).

Axes: N tokens, I in, O out, R rank.
"""

from functools import partial
from typing import Any

import torch
from torch import Tensor
from torch.nn.functional import linear

from trainer.inference.products import product


def fuse(model: Any) -> None:
    """Let every linear layer of a peft model with one plain adapter, `default`, compute in this way. Numbers differ from peft's
    by rounding. peft still computes if a layer gets an input of another precision, or if its adapter has a lower precision.
    """
    from peft.tuners.lora import Linear

    for layer in model.modules():
        if isinstance(layer, Linear):
            layer.forward = partial(_forward, layer, layer.forward)  # type: ignore[method-assign]  # that is the point


def _forward(layer: Any, stock: Any, x: Tensor) -> Tensor:
    a_RI, b_OR = layer.lora_A["default"].weight, layer.lora_B["default"].weight
    base = layer.base_layer
    if layer.merged or x.dtype != base.weight.dtype or torch.promote_types(x.dtype, a_RI.dtype) != a_RI.dtype:
        found: Tensor = stock(x)
        return found
    x_NI = x.reshape(-1, x.shape[-1])
    if not layer.disable_adapters:
        out_NO: Tensor = _Adapted.apply(x_NI, base.weight, base.bias, a_RI, b_OR, layer.scaling["default"])  # type: ignore[no-untyped-call]  # torch leaves it so
    elif torch.is_grad_enabled():
        out_NO = base(x_NI)
    else:  # the same product as with adapters, so that a model differs from the untrained one only by its adapters
        out_NO = product(x_NI, base.weight, base.bias)
    return out_NO.view(*x.shape[:-1], -1)


class _Adapted(torch.autograd.Function):
    """x W^T + b + s (x A^T) B^T in the precision of x; A and B are trained in their own precision. Keeps x and x A^T for the backward pass."""

    @staticmethod
    def forward(
        ctx: Any,
        x_NI: Tensor,
        weight_OI: Tensor,
        bias_O: Tensor | None,
        a_RI: Tensor,
        b_OR: Tensor,
        scale: float,
    ) -> Tensor:
        inner_NR = linear(x_NI, a_RI.to(x_NI.dtype)).mul_(scale)
        ctx.save_for_backward(x_NI, inner_NR, weight_OI, a_RI, b_OR)
        ctx.scale = scale
        return product(x_NI, weight_OI, bias_O).addmm_(inner_NR, b_OR.T.to(x_NI.dtype))

    @staticmethod
    def backward(ctx: Any, *gradients: Any) -> Any:
        slope_NO, (x_NI, inner_NR, weight_OI, a_RI, b_OR) = gradients[0], ctx.saved_tensors
        inner_slope_NR = (slope_NO @ b_OR.to(slope_NO.dtype)).mul_(ctx.scale)
        # The second product is the transpose of its transpose, which a CPU multiplies in as little as half the time.
        a_slope_RI, b_slope_OR = inner_slope_NR.T @ x_NI, (inner_NR.T @ slope_NO).T.contiguous()
        x_slope_NI = None
        if ctx.needs_input_grad[0]:
            x_slope_NI = product(slope_NO, weight_OI.T).addmm_(inner_slope_NR, a_RI.to(slope_NO.dtype))
        return x_slope_NI, None, None, a_slope_RI.to(a_RI.dtype), b_slope_OR.to(b_OR.dtype), None
