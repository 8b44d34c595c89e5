"""A key-value cache allocated once per batch, in which decoding writes in place.

The cache of transformers grows by concatenation: for 32 sequences that copies some 200 MB per token.
"""

from typing import Any

import torch
from torch import Tensor
from transformers import Cache
from transformers.cache_utils import CacheLayerMixin, DynamicCache


class SlotLayer(CacheLayerMixin):
    """Keys and values [B, H, slots, D]; every row writes its next token to the same slot."""

    is_sliding = False
    is_croppable = False

    def __init__(self, keys: Tensor, values: Tensor, filled: int) -> None:
        super().__init__()
        self.keys, self.values, self.filled = keys, values, filled
        self.is_initialized = True

    def lazy_initialization(self, key_states: Tensor, value_states: Tensor) -> None:
        """Nothing to do: the slots exist from the start."""

    def update(self, key_states: Tensor, value_states: Tensor, *_: Any, **__: Any) -> tuple[Tensor, Tensor]:
        end = self.filled + key_states.shape[2]
        self.keys[:, :, self.filled : end] = key_states
        self.values[:, :, self.filled : end] = value_states
        self.filled = end
        return self.keys[:, :, :end], self.values[:, :, :end]

    def get_mask_sizes(self, query_length: int) -> tuple[int, int]:
        return self.filled + query_length, 0

    def get_seq_length(self) -> int:
        return self.filled

    def get_max_length(self) -> int:
        return self.keys.shape[2]

    def keep(self, order: list[int]) -> None:
        for place, row in enumerate(order):
            if place != row:
                self.keys[place], self.values[place] = self.keys[row], self.values[row]
        self.keys, self.values = self.keys[: len(order)], self.values[: len(order)]


class SlotCache(Cache):
    """One `SlotLayer` per layer of the model."""

    def __init__(self, layers: list[SlotLayer]) -> None:
        super().__init__(layers=layers)

    @classmethod
    def empty_like(cls, prefix: DynamicCache, rows: int, prompt_slots: int, new_tokens: int) -> "SlotCache":
        """Zeroed: a slot that a row does not use is masked, but attention still multiplies it, and 0 x NaN is NaN."""
        layers = []
        for layer in prefix.layers:
            _, heads, _, width = layer.keys.shape
            shape = (rows, heads, prompt_slots + new_tokens, width)
            layers.append(SlotLayer(layer.keys.new_zeros(shape), layer.values.new_zeros(shape), prompt_slots))
        return cls(layers)

    def copy_prefix(self, row: int, prefix: DynamicCache, path: Tensor) -> None:
        """Fill the first slots of a row with the nodes of one path of a prefix tree."""
        for mine, computed in zip(self.layers, prefix.layers, strict=True):
            mine.keys[row, :, : len(path)] = computed.keys[0, :, path]
            mine.values[row, :, : len(path)] = computed.values[0, :, path]

    def keep(self, order: list[int]) -> None:
        """Row `order[i]` becomes row i and all others are dropped; a row may only move towards the front."""
        for layer in self.layers:
            layer.keep(order)


def prompt_mask(lengths_B: Tensor, prompt_slots: int, new_tokens: int) -> Tensor:
    """[B, slots]: True where a row may look; rows with shorter prompts skip the slots behind their prompt."""
    slots = torch.arange(prompt_slots + new_tokens)
    return (slots[None, :] < lengths_B[:, None]) | (slots[None, :] >= prompt_slots)
