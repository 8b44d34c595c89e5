"""Adapters beside the weights of a model that samples, not merged into them: a push is some megabytes, and nothing is rounded.

A layer gives `W x + B (A x)`, as peft computes it. A and B are float32 for any precision of W, so that a change too small
for a bfloat16 weight still counts.
"""

import torch
from torch import Tensor, nn
from transformers import PreTrainedModel


class LowRank(nn.Module):
    """A linear layer [.., I] -> [.., O] with A [R, I] and B [O, R]; B includes the scale. Both are 0 at first."""

    def __init__(self, base: nn.Linear, rank: int) -> None:
        super().__init__()
        self.base = base
        device, dtype = base.weight.device, torch.float32
        self.lora_A = nn.Linear(base.in_features, rank, bias=False, device=device, dtype=dtype)
        self.lora_B = nn.Linear(rank, base.out_features, bias=False, device=device, dtype=dtype)
        for part in (self.lora_A, self.lora_B):
            nn.init.zeros_(part.weight)

    def forward(self, x: Tensor) -> Tensor:
        plain: Tensor = self.base(x)
        added: Tensor = self.lora_B(self.lora_A(x.float()))
        return (plain + added).to(plain.dtype)


def with_low_rank(model: PreTrainedModel, rank: int) -> PreTrainedModel:
    """Add them to every linear layer but the head, as peft's `all-linear` does. Changes the model and returns it."""
    head = model.get_output_embeddings()
    for name, module in list(model.named_modules()):
        if isinstance(module, nn.Linear) and module is not head:
            above, _, own = name.rpartition(".")
            setattr(model.get_submodule(above), own, LowRank(module, rank))
    return model
