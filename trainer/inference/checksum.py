"""Did the weights arrive? The same number on both sides of a push says so."""

from collections.abc import Iterable, Iterator, Mapping

import torch
import xxhash
from torch import Tensor

Weights = Mapping[str, Tensor]


class Checksum:
    """Of names, shapes, precision and values of tensors, in whatever order they are added.

    XXH3 with 128 bits: faster than memory, and nobody forges weights here. -0 counts as 0, since an engine that has
    packed its weights gives them back by multiplying with them.
    """

    def __init__(self) -> None:
        self._parts: dict[str, str] = {}

    def add(self, name: str, tensor: Tensor) -> None:
        plain = (tensor.detach() + 0.0).cpu().contiguous()
        found = xxhash.xxh3_128(f"{name} {tuple(plain.shape)} {plain.dtype} ".encode())
        found.update(plain.reshape(-1).view(torch.uint8).numpy())
        self._parts[name] = found.hexdigest()

    def watching(self, weights: Iterable[tuple[str, Tensor]]) -> Iterator[tuple[str, Tensor]]:
        """The same weights; each is added on its way."""
        for name, tensor in weights:
            self.add(name, tensor)
            yield name, tensor

    def hexdigest(self) -> str:
        return xxhash.xxh3_128("".join(self._parts[name] for name in sorted(self._parts)).encode()).hexdigest()


def digest_of(weights: Weights) -> str:
    """The checksum of all of them."""
    checksum = Checksum()
    for name, tensor in weights.items():
        checksum.add(name, tensor)
    return checksum.hexdigest()
