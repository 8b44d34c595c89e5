"""Linear layers in int8 or int4 for a model that samples: whole numbers of few bits, with a scale for each row of a matrix.

A layer's weights are rounded once, when they are pushed; its inputs are rounded in each pass, to eight bits (W8A8: Dettmers et al., 2022,
section 2, without outliers; or W4A8). The sums are of whole numbers, so no row of a pass depends on the others. Numbers of four bits
take a byte each here. Head, embeddings and norms are not rounded.

Axes: N rows, I in, O out.
"""

from collections.abc import Iterable, Iterator, Mapping
from typing import Literal

import torch
from torch import Tensor, nn
from transformers import PreTrainedModel

Named = tuple[str, Tensor]
Rounded = Literal["int8", "int4"]
LARGEST: Mapping[Rounded, int] = {"int8": 127, "int4": 7}
"""The largest whole number that a weight is rounded to; the least one is its negative."""


class WholeLinear(nn.Module):
    """A linear layer [.., I] -> [.., O] of whole numbers. `largest` is that of its weights. `parts` is the number of eight-bit
    numbers that an input is made of; the second one is the remainder of the first.
    """

    def __init__(self, plain: nn.Linear, largest: int = LARGEST["int8"], parts: int = 1) -> None:
        super().__init__()
        self.largest, self.parts, self.bias = largest, parts, plain.bias
        whole, scale = rounded(plain.weight.detach(), largest)
        self.weight, self.scale = nn.Buffer(whole), nn.Buffer(scale)

    def forward(self, x: Tensor) -> Tensor:
        rest_NI, wholes, scales = x.reshape(-1, x.shape[-1]).float(), [], []
        for _ in range(self.parts):
            whole_NI, scale_N = rounded(rest_NI)
            rest_NI = rest_NI - whole_NI * scale_N[:, None]
            wholes.append(whole_NI)
            scales.append(scale_N)
        sums = _product(torch.cat(wholes), self.weight).float() * torch.cat(scales)[:, None]
        out_NO: Tensor = sums.view(self.parts, len(rest_NI), -1).sum(0) * self.scale
        if self.bias is not None:
            out_NO = out_NO + self.bias
        return out_NO.to(x.dtype).view(*x.shape[:-1], -1)


def rounded(rows_NI: Tensor, largest: int = LARGEST["int8"]) -> tuple[Tensor, Tensor]:
    """Each row as whole numbers of -largest .. largest [N, I], and the factor of each row [N], in float32."""
    wide_NI = rows_NI.float()
    scale_N = wide_NI.abs().amax(-1).div(largest).clamp(min=torch.finfo(torch.float32).tiny)
    return (wide_NI / scale_N[:, None]).round().to(torch.int8), scale_N


def _product(a_NI: Tensor, b_OI: Tensor) -> Tensor:
    """a b^T of whole numbers. A GPU's own product needs shapes that a decoding step may not have."""
    if a_NI.device.type == "cpu":
        return torch._int_mm(a_NI, b_OI.T)
    return a_NI.float() @ b_OI.float().T


def in_whole_numbers(model: PreTrainedModel, kind: Rounded, parts: int = 1) -> PreTrainedModel:
    """Round every linear layer but the head and the adapters. Changes the model and returns it."""
    head = model.get_output_embeddings()
    for name, module in list(model.named_modules()):
        above, _, own = name.rpartition(".")
        if type(module) is nn.Linear and module is not head and not own.startswith("lora_"):
            setattr(model.get_submodule(above), own, WholeLinear(module, LARGEST[kind], parts))
    return model


def held_tensors(model: nn.Module) -> dict[str, Tensor]:
    """The tensors that a push replaces, by name: parameters, and the rounded layers' whole numbers and scales."""
    found: dict[str, Tensor] = dict(model.named_parameters())
    for name, module in model.named_modules():
        if isinstance(module, WholeLinear):
            found |= {f"{name}.weight": module.weight, f"{name}.scale": module.scale}
    return found


def as_held(weights: Iterable[Named], layers: Mapping[str, int]) -> Iterator[Named]:
    """Yields `weights` as the sampler holds them; those of `layers` (as `layers_of` gives them) are rounded, each followed by its scale."""
    for name, tensor in weights:
        if name not in layers:
            yield name, tensor
            continue
        whole, scale = rounded(tensor.detach(), layers[name])
        yield name, whole
        yield f"{name.removesuffix('.weight')}.scale", scale


def layers_of(model: nn.Module) -> dict[str, int]:
    """The names of the rounded weights, each with its largest whole number."""
    layers = ((name, module) for name, module in model.named_modules() if isinstance(module, WholeLinear))
    return {f"{name}.weight": layer.largest for name, layer in layers}
