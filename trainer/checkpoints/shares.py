"""Tensors of which several processes hold a share each, written to files and read from them.

A process writes the rows that it holds. The index says which rows of the whole these are, so any number of processes can read
them again, each the rows that it will hold.
"""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, NamedTuple

import torch
from safetensors import safe_open
from safetensors.torch import save_file
from torch import Tensor

from trainer.files import digest_of

from .place import CheckpointPlace


class Rows(NamedTuple):
    """A tensor, or its rows from `start`; `of` is the number of all rows. `of` None: the tensor is whole."""

    tensor: Tensor
    start: int = 0
    of: int | None = None


@dataclass(frozen=True)
class File:
    """A file as the index knows it. `rows` has, by tensor, the first row in the file and the number of all rows; a tensor
    without an entry is whole.
    """

    name: str
    owner: str
    digest: str
    bytes: int = 0
    rows: Mapping[str, tuple[int, int]] = field(default_factory=dict)


def write_share(
    place: CheckpointPlace, step: int, owner: str, share: Mapping[str, Rows], number: int = 0, count: int = 1
) -> File:
    """Put the share of one process in an owner's tensors; it is number `number` of `count`. Tensors in the machine's memory
    are written without a copy. Raises OSError.
    """
    name = f"{owner}.safetensors" if count == 1 else f"{owner}-{number + 1:05d}-of-{count:05d}.safetensors"
    tensors = {key: rows.tensor.detach().cpu().contiguous() for key, rows in share.items()}
    found: list[tuple[str, int]] = []

    def write(path: Path) -> None:
        save_file(tensors, path)
        found.append((digest_of(path), path.stat().st_size))

    place.put(step, name, write)
    split = {key: (rows.start, rows.of) for key, rows in share.items() if rows.of is not None}
    return File(name, owner, *found[-1], rows=split)


class StoredTensors(Mapping[str, Tensor]):
    """An owner's tensors in files: a tensor, or some rows of it, is read when it is asked for.

    What was read stays valid when the files are deleted. The object can be sent to other processes, which read for themselves.
    """

    def __init__(self, files: Sequence[tuple[Path, Mapping[str, tuple[int, int]]]]) -> None:
        self._files = files
        self._open: list[Any] = []
        self._parts: dict[str, list[tuple[int, int, int]]] = {}
        for number, (path, split) in enumerate(files):
            file: Any = safe_open(str(path), framework="pt")  # safe_open has no types
            self._open.append(file.__enter__())
            for name in self._open[-1].keys():  # noqa: SIM118 - not a mapping
                start, of = split.get(name, (0, -1))
                self._parts.setdefault(name, []).append((start, of, number))
        for parts in self._parts.values():
            parts.sort()

    def __getitem__(self, name: str) -> Tensor:
        parts = self._parts[name]
        if len(parts) == 1:
            tensor: Tensor = self._open[parts[0][2]].get_tensor(name)
            return tensor
        return self.rows(name, 0, self.shape(name)[0])

    def __iter__(self) -> Iterator[str]:
        return iter(self._parts)

    def __len__(self) -> int:
        return len(self._parts)

    def __reduce__(self) -> tuple[Any, ...]:
        return StoredTensors, (self._files,)

    @property
    def paths(self) -> list[Path]:
        return [path for path, _ in self._files]

    def shape(self, name: str) -> tuple[int, ...]:
        """The shape of the whole tensor; its values are not read."""
        _, of, number = self._parts[name][0]
        first = tuple(self._open[number].get_slice(name).get_shape())
        return first if of < 0 else (of, *first[1:])

    def rows(self, name: str, start: int, stop: int) -> Tensor:
        """The rows `start` to `stop` [stop - start, ...]; other rows are not read."""
        found = []
        for first, _, number in self._parts[name]:
            part = self._open[number].get_slice(name)
            count = part.get_shape()[0]
            here = slice(max(0, start - first), max(0, min(count, stop - first)))
            if here.start < here.stop:
                found.append(part[here])
        if not found:
            return self._empty(name)
        return found[0] if len(found) == 1 else torch.cat(found)

    def lacks(self) -> str | None:
        """A tensor with missing or repeated rows; None if all are whole."""
        for name, parts in self._parts.items():
            at = 0
            for first, of, number in parts:
                if of < 0:
                    if len(parts) > 1:
                        return name
                    continue
                if first != at:
                    return name
                at += self._open[number].get_slice(name).get_shape()[0]
            if parts[0][1] >= 0 and at != parts[0][1]:
                return name
        return None

    def _empty(self, name: str) -> Tensor:
        _, _, number = self._parts[name][0]
        none: Tensor = self._open[number].get_slice(name)[0:0]
        return none
