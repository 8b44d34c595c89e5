"""Did the weights arrive? The same number on both sides of a push says so."""

from collections.abc import Iterable, Iterator, Mapping
from concurrent.futures import ThreadPoolExecutor

import torch
import xxhash
from torch import Tensor

Weights = Mapping[str, Tensor]
_PIECE = 1 << 17


class Checksum:
    """Of names, shapes, precision and values of tensors, in whatever order they are added.

    XXH3 with 128 bits: faster than memory, and nobody forges weights here. -0 counts as 0, since an engine that has
    packed its weights gives them back by multiplying with them.
    """

    def __init__(self) -> None:
        self._parts: dict[str, str] = {}

    def add(self, name: str, tensor: Tensor) -> None:
        self._parts[name] = _digest(name, tensor)

    def add_all(self, weights: Weights) -> None:
        """The same for all of them, side by side on the processors that torch may use."""
        with ThreadPoolExecutor(torch.get_num_threads()) as threads:
            self._parts |= zip(weights, threads.map(_digest, weights, weights.values()), strict=True)

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
    checksum.add_all(weights)
    return checksum.hexdigest()


@torch.inference_mode()
def _digest(name: str, tensor: Tensor) -> str:
    """Piece by piece, so that a copy without -0 never leaves the processor's cache."""
    plain = tensor.detach().cpu().contiguous().reshape(-1)
    found = xxhash.xxh3_128(f"{name} {tuple(tensor.shape)} {plain.dtype} ".encode())
    piece = torch.empty(min(_PIECE, len(plain)), dtype=plain.dtype)
    content = piece.view(torch.uint8).numpy()
    for part in plain.split(_PIECE):
        torch.add(part, 0, out=piece[: len(part)])
        found.update(content[: len(part) * plain.element_size()])
    return found.hexdigest()
