"""Measures the number of rows that a pass of a sampler needs so that no row's numbers depend on the other rows.

A library multiplies few rows by one kernel and more rows by another, and the two add up in another order. From which number on nothing
changes depends on the processor: 4 rows for each thread on AMD EPYC, 16 on Intel's. So it is measured, by the model's own matrices.

Axes: N rows, I in, O out.
"""

from collections.abc import Iterator

import torch
from torch import Tensor, nn
from torch.nn.functional import linear

LEAST_PER_THREAD = 4
LOOKED_AT = 4
"""Rows of which every bit is compared."""


def unit_of_rows(model: nn.Module, most: int) -> int:
    """The smallest unit found, so that passes of any multiple of it, up to `most` rows, give each row the same bits.

    It is `most` itself, so that all passes have the same number of rows, if no smaller one does, or on a GPU, whose kernel depends on the rows.
    """
    if next(model.parameters()).device.type != "cpu":
        return most
    unit = LEAST_PER_THREAD * torch.get_num_threads()
    weights = list(_weights(model))
    while unit < most:
        if all(_is_steady(weight, unit, most) for weight in weights):
            return unit
        unit *= 2
    return most


def _weights(model: nn.Module) -> Iterator[Tensor]:
    """One matrix [O, I] of each shape and precision with which a linear layer multiplies."""
    seen = set()
    for layer in model.modules():
        if type(layer) is nn.Linear and (kind := (layer.weight.shape, layer.weight.dtype)) not in seen:
            seen.add(kind)
            yield layer.weight


@torch.inference_mode()
def _is_steady(weight_OI: Tensor, unit: int, most: int) -> bool:
    draw = torch.Generator().manual_seed(0)
    rows = -(-most // unit) * unit
    x_NI = torch.randn(rows, weight_OI.shape[1], generator=draw).to(weight_OI.dtype)
    first = linear(x_NI[:unit], weight_OI)[:LOOKED_AT]
    return all(
        torch.equal(linear(x_NI[:count], weight_OI)[:LOOKED_AT], first) for count in range(2 * unit, rows + 1, unit)
    )
