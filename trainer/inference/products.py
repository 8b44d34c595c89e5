"""Products with matrices that stay as they are, by oneDNN instead of MKL.

torch multiplies float32 on a CPU by MKL, which keeps to AVX2 on processors that are not Intel's, and which lays the matrix
out anew in each call: with the few rows of a decoding step that costs about as much as the product. oneDNN uses what the
processor has, and can be given a matrix in the layout that it multiplies by. bfloat16 is multiplied by oneDNN in any case,
but laid out anew in each call, too.

Axes: N rows, I in, O out.
"""

from collections.abc import Iterator
from contextlib import contextmanager
from functools import partial

import torch
from torch import Tensor, nn
from torch.nn.functional import linear

_LEAST = 1 << 16
"""Numbers of a matrix below which calling oneDNN costs more than it saves."""


def product(x_NI: Tensor, weight_OI: Tensor, bias_O: Tensor | None = None) -> Tensor:
    """x W^T + b, a fresh tensor [N, O]. Nothing flows back through it where oneDNN computes, so call it without gradients."""
    if not suits(weight_OI):
        return linear(x_NI, weight_OI, bias_O)
    return _by_onednn(weight_OI, bias_O, x_NI.contiguous())


def suits(weight: Tensor) -> bool:
    """Whether products with it are oneDNN's: large and float32, on a CPU, and no view of a tensor on other machines."""
    return _large(weight, (torch.float32,))


def _large(weight: Tensor, dtypes: tuple[torch.dtype, ...]) -> bool:
    plain = type(weight) in (Tensor, nn.Parameter) and weight.device.type == "cpu" and weight.dtype in dtypes
    return plain and weight.numel() >= _LEAST and bool(torch.backends.mkldnn.is_available())


def computes_bfloat16() -> bool:
    """Whether the processor itself multiplies in bfloat16 (AVX512-BF16 or AMX; on ARM, BF16). Others do it by software."""
    found = torch.cpu.get_capabilities()
    return any(found.get(name) for name in ("avx512_bf16", "amx_bf16", "bf16"))


def lays_out(model: nn.Module) -> bool:
    """Whether oneDNN multiplies by all large matrices of the model's linear layers in a layout of its own."""
    dtypes = (torch.float32, torch.bfloat16) if computes_bfloat16() else (torch.float32,)
    return all(_large(layer.weight, dtypes) for layer in model.modules() if type(layer) is nn.Linear)


@contextmanager
def laid_out(model: nn.Module, rows: int) -> Iterator[None]:
    """Meanwhile linear layers multiply by copies of their weights as they are now, in oneDNN's layout for so many rows:
    those in float32, and those in bfloat16 where the processor computes in it.

    Laying them out costs about what one pass over 32 rows does, and as much memory as the layers have.
    """
    layers = [part for part in model.modules() if type(part) is nn.Linear and "forward" not in vars(part)]
    dtypes = (torch.float32, torch.bfloat16) if computes_bfloat16() else (torch.float32,)
    suited = [layer for layer in layers if _large(layer.weight, dtypes)]
    try:
        for layer in suited:
            copy = torch.ops.mkldnn._reorder_linear_weight(layer.weight.detach(), rows)
            layer.forward = partial(_by_onednn, copy, layer.bias)  # type: ignore[method-assign]
        yield
    finally:
        for layer in suited:
            vars(layer).pop("forward", None)


def _by_onednn(weight: Tensor, bias: Tensor | None, x: Tensor) -> Tensor:
    found: Tensor = torch.ops.mkldnn._linear_pointwise(x, weight, bias, "none", [], "")
    return found
