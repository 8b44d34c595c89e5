"""Adapters added where the layer's own product lies, instead of in three more passes over what it gives.

peft scales what an adapter gives and adds it to the layer's output: two tensors of the output's size, and one more on the way
back. Scaled between its two matrices, where it has `rank` numbers a token, and added by the product itself, it makes none.
"""

from functools import partial
from typing import Any

from torch import Tensor
from torch.nn.functional import linear


def fuse(model: Any) -> None:
    """Let every linear layer of a peft model with one plain adapter, `default`, compute in this way. Numbers differ from peft's
    by rounding; where adapters are off, or of another precision than the layer, peft computes."""
    from peft.tuners.lora import Linear

    for layer in model.modules():
        if isinstance(layer, Linear):
            layer.forward = partial(_forward, layer, layer.forward)


def _forward(layer: Any, stock: Any, x: Tensor) -> Tensor:
    a_RI, b_OR = layer.lora_A["default"].weight, layer.lora_B["default"].weight
    if layer.disable_adapters or layer.merged or not x.dtype == a_RI.dtype == layer.base_layer.weight.dtype:
        found: Tensor = stock(x)
        return found
    x_NI = x.reshape(-1, x.shape[-1])
    inner_NR = linear(x_NI, a_RI) * layer.scaling["default"]
    out_NO: Tensor = layer.base_layer(x_NI).addmm_(inner_NR, b_OR.T)
    return out_NO.view(*x.shape[:-1], -1)
