"""Did the weights arrive? The same number on both sides of a push says so."""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor

import numpy as np
import torch
import xxhash
from torch import Tensor

Weights = Mapping[str, Tensor]
Named = tuple[str, Tensor]
FORMAT = 2
"""Goes up whenever the checksum of the same weights becomes another one: two programs compare theirs."""
_PIECE = 1 << 19
"""Bytes that stay in a processor's own cache from one look at them to the next."""
_SHARE = 1 << 20
"""Bytes that a thread is given at once: the small tensors of adapters by the dozen."""
_WAITING = 1 << 26
"""Bytes of tensors that wait to be summed up, and are kept so long."""
_SIGNED = {1: torch.int8, 2: torch.int16, 4: torch.int32, 8: torch.int64}
_UNSIGNED = {1: torch.uint8, 2: torch.uint16, 4: torch.uint32, 8: torch.uint64}


class Checksum:
    """Of names, shapes, precision and values of tensors, in whatever order they are added.

    XXH3 with 128 bits: faster than memory, and nobody forges weights here. -0 counts as 0, since an engine that has
    packed its weights gives them back by multiplying with them.
    """

    def __init__(self) -> None:
        self._parts: dict[str, str] = {}
        self._waiting: list[Named] = []
        self._bytes = 0

    def add(self, name: str, tensor: Tensor) -> None:
        """It is read by `hexdigest` at the latest, and must not change until then."""
        self._waiting.append((name, tensor.detach()))
        self._bytes += tensor.nbytes
        if self._bytes >= _WAITING:
            self._sum_up()

    def watching(self, weights: Iterable[Named]) -> Iterator[Named]:
        """The same weights; each is added on its way."""
        for name, tensor in weights:
            self.add(name, tensor)
            yield name, tensor

    def hexdigest(self) -> str:
        self._sum_up()
        return xxhash.xxh3_128("\n".join(self._parts[name] for name in sorted(self._parts)).encode()).hexdigest()

    def _sum_up(self) -> None:
        """Side by side on the processors that torch may use."""
        with ThreadPoolExecutor(torch.get_num_threads()) as threads:
            for parts in threads.map(_parts, _shares(self._waiting)):
                self._parts |= parts
        self._waiting, self._bytes = [], 0


def digest_of(weights: Weights) -> str:
    """The checksum of all of them."""
    checksum = Checksum()
    for name, tensor in weights.items():
        checksum.add(name, tensor)
    return checksum.hexdigest()


def _shares(tensors: Sequence[Named]) -> Iterator[list[Named]]:
    share: list[Named] = []
    for named in tensors:
        share.append(named)
        if sum(tensor.nbytes for _, tensor in share) >= _SHARE:
            yield share
            share = []
    if share:
        yield share


def _parts(tensors: Sequence[Named]) -> dict[str, str]:
    return {name: f"{name} {tuple(tensor.shape)} {tensor.dtype} {_digest(tensor)}" for name, tensor in tensors}


def _digest(tensor: Tensor) -> str:
    """As integers, since numpy knows no bfloat16. -0 has the bits of the least one, so the least of a piece tells of any."""
    plain = tensor.cpu().contiguous().reshape(-1)
    bits = plain.view((_SIGNED if plain.is_floating_point() else _UNSIGNED)[plain.element_size()]).numpy()
    found, least = xxhash.xxh3_128(), np.iinfo(bits.dtype).min
    step = _PIECE // bits.itemsize
    for start in range(0, len(bits), step):
        piece = bits[start : start + step]
        found.update(piece if piece.min() != least else np.where(piece == least, bits.dtype.type(0), piece))
    return found.hexdigest()
