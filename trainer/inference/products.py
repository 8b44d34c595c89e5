"""Products with matrices that do not change, by oneDNN instead of MKL.

torch multiplies float32 on a CPU by MKL, which uses only AVX2 on CPUs that are not Intel's, and lays the matrix
out again in each call: with the few rows of a decoding step that costs about as much as the product. oneDNN uses all that the
CPU has, and can take a matrix in the layout that it multiplies by. bfloat16 is multiplied by oneDNN in any case,
but also laid out again in each call.

Axes: N rows, I in, O out.
"""

from collections.abc import Iterator
from contextlib import contextmanager
from functools import partial

import torch
from torch import Tensor, nn
from torch.nn.functional import linear

_LEAST = 1 << 16
"""For a matrix of fewer numbers, calling oneDNN costs more than it saves."""


def product(x_NI: Tensor, weight_OI: Tensor, bias_O: Tensor | None = None) -> Tensor:
    """x W^T + b, a new tensor [N, O]. The product of oneDNN has no gradient, so call it without gradients."""
    if not suits(weight_OI):
        return linear(x_NI, weight_OI, bias_O)
    return _by_onednn(weight_OI, bias_O, x_NI.contiguous())


def suits(weight: Tensor) -> bool:
    """Whether oneDNN makes products with it: it is large and float32 on a CPU, and not a view of a tensor of several machines."""
    return _large(weight, (torch.float32,))


def _large(weight: Tensor, dtypes: tuple[torch.dtype, ...]) -> bool:
    plain = type(weight) in (Tensor, nn.Parameter) and weight.device.type == "cpu" and weight.dtype in dtypes
    return plain and weight.numel() >= _LEAST and bool(torch.backends.mkldnn.is_available())


def computes_bfloat16() -> bool:
    """Whether the CPU itself multiplies in bfloat16 (AVX512-BF16 or AMX; on ARM, BF16). Other CPUs do it in software."""
    found = torch.cpu.get_capabilities()
    return any(found.get(name) for name in ("avx512_bf16", "amx_bf16", "bf16"))


def lays_out(model: nn.Module) -> bool:
    """Whether oneDNN multiplies by all large matrices of the model's linear layers in a layout of its own."""
    dtypes = (torch.float32, torch.bfloat16) if computes_bfloat16() else (torch.float32,)
    return all(_large(layer.weight, dtypes) for layer in model.modules() if type(layer) is nn.Linear)


@contextmanager
def laid_out(model: nn.Module, rows: int) -> Iterator[None]:
    """While the block runs, linear layers multiply by copies of their present weights, in oneDNN's layout for this many rows:
    layers in float32, and layers in bfloat16 if the CPU computes in it.

    Laying them out costs about as much time as one pass over 32 rows, and as much memory as the layers have.
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
