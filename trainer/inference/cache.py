"""A key-value cache allocated once per call, in which decoding writes in place.

The cache of transformers grows by concatenation: for 32 sequences that copies some 200 MB per token.
"""

from typing import Any

import torch
from torch import Tensor
from transformers import Cache
from transformers.cache_utils import CacheLayerMixin, DynamicCache


class SlotLayer(CacheLayerMixin):
    """Keys and values [rows, H, slots, D], of which the first B rows are in use.

    Row b keeps the token at position t of its sequence in slot t, so rows of any age decode side by side.
    """

    is_sliding = False
    is_croppable = False
    keys: Tensor
    values: Tensor

    def __init__(self, keys: Tensor, values: Tensor) -> None:
        super().__init__()  # type: ignore[no-untyped-call]  # transformers leaves it so
        self.keys, self.values = keys, values
        self.places_B = torch.empty(0, dtype=torch.long)
        self.seen = 0
        self.is_initialized = True

    def lazy_initialization(self, key_states: Tensor, value_states: Tensor) -> None:
        """Nothing to do, because the slots exist from the start."""

    def update(self, key_states: Tensor, value_states: Tensor, *_: Any, **__: Any) -> tuple[Tensor, Tensor]:
        B = len(self.places_B)
        rows_B = torch.arange(B, device=self.places_B.device)
        self.keys[rows_B, :, self.places_B] = key_states[:, :, 0]
        self.values[rows_B, :, self.places_B] = value_states[:, :, 0]
        return self.keys[:B, :, : self.seen], self.values[:B, :, : self.seen]

    def get_mask_sizes(self, query_length: int) -> tuple[int, int]:
        return self.seen, 0

    def get_seq_length(self) -> int:
        return self.seen - 1

    def get_max_length(self) -> int:
        return self.keys.shape[2]

    def put(self, row: int, keys: Tensor, values: Tensor) -> None:
        """Fill the first slots of a row with keys and values [H, slots, D]."""
        self.keys[row, :, : keys.shape[1]] = keys
        self.values[row, :, : values.shape[1]] = values

    def move(self, row: int, place: int, slots: int) -> None:
        self.put(place, self.keys[row, :, :slots], self.values[row, :, :slots])

    def grow(self, rows: int, slots: int) -> None:
        self.keys, self.values = (_grown(each, rows, slots) for each in (self.keys, self.values))


class SlotCache(Cache):
    """One `SlotLayer` per layer of the model."""

    def __init__(self, layers: list[SlotLayer]) -> None:
        super().__init__(layers=[*layers])
        self._slots = layers

    @classmethod
    def empty_like(cls, prefix: DynamicCache, rows: int, slots: int) -> "SlotCache":
        """A cache of zeros: a slot that a row does not use is masked, but attention still multiplies it, and 0 x NaN is NaN."""
        layers = []
        for keys, values in _filled(prefix):
            _, heads, _, width = keys.shape
            shape = (rows, heads, slots, width)
            layers.append(SlotLayer(keys.new_zeros(shape), values.new_zeros(shape)))
        return cls(layers)

    def copy_prefix(self, row: int, prefix: DynamicCache, path: Tensor) -> None:
        """Fill the first slots of a row with the nodes of one path of a prefix tree."""
        for mine, (keys, values) in zip(self._slots, _filled(prefix), strict=True):
            mine.put(row, keys[0, :, path], values[0, :, path])

    def copy_row(self, row: int, place: int, slots: int) -> None:
        """Copy the first `slots` of row `row` to row `place`."""
        for layer in self._slots:
            layer.move(row, place, slots)

    @property
    def size(self) -> tuple[int, int]:
        """Rows and slots."""
        return self._slots[0].keys.shape[0], self._slots[0].keys.shape[2]

    def grow(self, rows: int, slots: int) -> None:
        """Make room for more rows, or longer ones; the contents stay."""
        for layer in self._slots:
            layer.grow(rows, slots)

    def aim(self, places_B: Tensor, width: int = 1) -> Tensor:
        """Let row b write its next token to slot `places_B[b]` and see the slots up to that one.

        Returns the mask of that pass, [B, 1, 1, slots]: True where a row may look. The number of slots is a multiple of `width`.
        """
        seen = -(-(int(places_B.max()) + 1) // width) * width
        for layer in self._slots:
            layer.places_B, layer.seen = places_B, seen
        slots = torch.arange(seen, device=places_B.device)
        return (slots[None, :] <= places_B[:, None])[:, None, None]


def _filled(prefix: DynamicCache) -> list[tuple[Tensor, Tensor]]:
    """Keys and values of each layer, after a pass."""
    found = []
    for layer in prefix.layers:
        assert isinstance(layer, CacheLayerMixin)  # noqa: S101 - layers of the models that we sample hold keys and values
        assert layer.keys is not None and layer.values is not None  # noqa: S101 - the pass has filled them
        found.append((layer.keys, layer.values))
    return found


def _grown(old: Tensor, rows: int, slots: int) -> Tensor:
    new = old.new_zeros((rows, old.shape[1], slots, old.shape[3]))
    new[: old.shape[0], :, : old.shape[2]] = old
    return new
