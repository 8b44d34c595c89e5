"""Checksums of weights: a push has arrived if both sides compute the same one."""

from collections.abc import Iterable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor

import numpy as np
import torch
import xxhash
from torch import Tensor

from .weights import Weights

Named = tuple[str, Tensor]
FORMAT = 2
"""Raise this number whenever the checksum of the same weights changes: two programs compare their checksums."""
_PIECE = 1 << 19
"""Bytes that stay in a CPU's own cache from one pass over them to the next; smaller tensors are summed up together."""
_ALONE = 1 << 25
"""Up to this number of bytes, one thread is faster than several that wait for each other."""
_WAITING = 1 << 26
"""Bytes of tensors that are kept until they are summed up together."""
_SIGNED = {1: torch.int8, 2: torch.int16, 4: torch.int32, 8: torch.int64}
_UNSIGNED = {1: torch.uint8, 2: torch.uint16, 4: torch.uint32, 8: torch.uint64}


class Checksum:
    """A checksum of names, shapes, precision and values of tensors that does not depend on the order in which they are added.

    The hash is XXH3 with 128 bits: it is faster than memory, and weights need no protection from forgery here. -0 counts as 0, because an
    engine that has packed its weights gives them back by multiplying with them.
    """

    def __init__(self) -> None:
        self._parts: dict[str, str] = {}
        self._waiting: list[Named] = []
        self._bytes = 0

    def add(self, name: str, tensor: Tensor) -> None:
        """Add a tensor. It is read at the latest by `hexdigest`, and must not change until then."""
        self._waiting.append((name, tensor.detach()))
        self._bytes += tensor.nbytes
        if self._bytes >= _WAITING:
            self._sum_up()

    def watching(self, weights: Iterable[Named]) -> Iterator[Named]:
        """Yields `weights` unchanged, and adds each to the sum when it passes."""
        for name, tensor in weights:
            self.add(name, tensor)
            yield name, tensor

    def hexdigest(self) -> str:
        self._sum_up()
        return xxhash.xxh3_128("\n".join(self._parts[name] for name in sorted(self._parts)).encode()).hexdigest()

    def _sum_up(self) -> None:
        """Sum up the waiting tensors in parallel on the CPUs that torch may use."""
        self._parts |= _parts_of(self._waiting)
        self._waiting, self._bytes = [], 0


def digest_of(weights: Weights) -> str:
    """The checksum of all these weights."""
    checksum = Checksum()
    checksum._parts = _parts_of([(name, tensor.detach()) for name, tensor in weights.items()])
    return checksum.hexdigest()


def _parts_of(tensors: Sequence[Named]) -> dict[str, str]:
    threads = torch.get_num_threads() if sum(tensor.nbytes for _, tensor in tensors) > _ALONE else 1
    if threads == 1:
        return _parts(tensors)
    parts: dict[str, str] = {}
    with ThreadPoolExecutor(threads) as pool:
        for done in pool.map(_parts, _shares(tensors, threads)):
            parts |= done
    return parts


def _shares(tensors: Sequence[Named], threads: int) -> list[list[Named]]:
    """The tensors of each thread, with about as many bytes for each: the largest first, each to the thread that has least."""
    shares: list[list[Named]] = [[] for _ in range(threads)]
    loads = [0] * threads
    for named in sorted(tensors, key=lambda named: -named[1].nbytes):
        least = loads.index(min(loads))
        shares[least].append(named)
        loads[least] += named[1].nbytes
    return shares


def _parts(tensors: Sequence[Named]) -> dict[str, str]:
    parts = {}
    for together in _together(tensors):
        for (name, tensor), digest in zip(together, _digests([tensor for _, tensor in together]), strict=True):
            parts[name] = f"{name} {tuple(tensor.shape)} {tensor.dtype} {digest}"
    return parts


def _together(tensors: Iterable[Named]) -> Iterator[list[Named]]:
    """Small tensors of one precision together, up to a piece; each large tensor alone."""
    waiting: dict[tuple[torch.dtype, torch.device], list[Named]] = {}
    for named in tensors:
        if named[1].nbytes >= _PIECE:
            yield [named]
            continue
        alike = waiting.setdefault((named[1].dtype, named[1].device), [])
        alike.append(named)
        if len(alike) * named[1].nbytes >= _PIECE and sum(tensor.nbytes for _, tensor in alike) >= _PIECE:
            yield waiting.pop((named[1].dtype, named[1].device))
    yield from waiting.values()


def _digests(tensors: Sequence[Tensor]) -> Iterator[str]:
    """The digest of each tensor; all are of one precision on one device."""
    if len(tensors) == 1:
        yield _digest(tensors[0])
        return
    joined, start = _without_minus_zero(_bits(torch.cat([tensor.reshape(-1) for tensor in tensors]))), 0
    for tensor in tensors:
        yield xxhash.xxh3_128_hexdigest(joined[start : start + tensor.numel()].data)
        start += tensor.numel()


def _digest(tensor: Tensor) -> str:
    bits, found = _bits(tensor.reshape(-1)), xxhash.xxh3_128()
    step = _PIECE // bits.itemsize
    for start in range(0, len(bits), step):
        found.update(_without_minus_zero(bits[start : start + step]).data)
    return found.hexdigest()


def _bits(flat: Tensor) -> np.ndarray:
    """The numbers as integers of the same bits, because numpy knows no bfloat16."""
    plain = flat.cpu().contiguous()
    return plain.view((_SIGNED if plain.is_floating_point() else _UNSIGNED)[plain.element_size()]).numpy()


def _without_minus_zero(bits: np.ndarray) -> np.ndarray:
    """The bits with 0 for each -0. -0 has the bits of the least integer, so the minimum shows whether there is any; unsigned numbers have
    no -0.
    """
    least = np.iinfo(bits.dtype).min
    if least == 0 or len(bits) == 0 or bits.min() != least:
        return bits
    return np.where(bits == least, bits.dtype.type(0), bits)
