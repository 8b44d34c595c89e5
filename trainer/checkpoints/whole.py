"""A whole checkpoint: its index, its files, saving and loading."""

import hashlib
import json
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, Protocol

from torch import Tensor

from trainer.files import digest_of

from .place import INDEX, CheckpointPlace, Folder, name_of, step_of
from .shares import File, Rows, StoredTensors, write_share

_FORMAT = 2
_WHOLE = 1
"""The format of programs before shares: one file for each owner, of which the index has only the digest."""


class CheckpointInvalid(ValueError):
    """A checkpoint from which a run cannot resume; the message says which and why."""


class Elsewhere(Protocol):
    """Tensors that other processes hold, each its share."""

    bytes: int
    """Bytes of the largest share."""

    def keep(self) -> None:
        """Copy each share to its machine's memory, so that later training does not change what is written."""
        ...

    def write(self, place: CheckpointPlace, step: int) -> list[File]:
        """Write the kept copies or, without `keep`, the present values; may be repeated after an error. After `keep` another thread
        may call this while training continues. Raises OSError.
        """
        ...

    def let_go(self) -> None:
        """Free the kept copies: the checkpoint is published."""
        ...


@dataclass(frozen=True)
class Checkpoint:
    """`state` is plain JSON; `tensors` maps an owner such as `policy` to its named tensors; `elsewhere` are owners whose
    tensors other processes hold."""

    step: int
    state: dict[str, Any]
    tensors: Mapping[str, Mapping[str, Tensor]]
    elsewhere: Sequence[Elsewhere] = ()

    @property
    def bytes(self) -> int:
        """The number of bytes that a process must copy before training may continue while the checkpoint is written."""
        own = sum(tensor.nbytes for tensors in self.tensors.values() for tensor in tensors.values())
        return own + sum(held.bytes for held in self.elsewhere)

    def kept(self) -> "Checkpoint":
        """The checkpoint as copies, which training does not change."""
        for held in self.elsewhere:
            held.keep()
        copies = {
            owner: {name: tensor.detach().to("cpu", copy=True) for name, tensor in tensors.items()}
            for owner, tensors in self.tensors.items()
        }
        return replace(self, tensors=copies)


@dataclass(frozen=True)
class Loaded:
    """A checkpoint whose tensors lie in files; each is read when it is asked for."""

    step: int
    state: dict[str, Any]
    tensors: Mapping[str, StoredTensors]


@dataclass(frozen=True)
class Saved:
    name: str
    """The name, such as `step-000010`."""
    bytes: int
    digest: str
    """SHA-256 over the index, which contains the digests of the tensor files, and the state."""


def save(place: CheckpointPlace | Path, checkpoint: Checkpoint, keep: int) -> Saved:
    """Write the checkpoint, then delete all but the newest `keep`. Raises OSError; earlier checkpoints stay."""
    place, step = _at(place), checkpoint.step
    place.begin(step)
    try:
        files = [file for held in checkpoint.elsewhere for file in held.write(place, step)]
        for owner, tensors in checkpoint.tensors.items():
            files.append(write_share(place, step, owner, {name: Rows(tensor) for name, tensor in tensors.items()}))
        index = _index(checkpoint, files)
        place.publish(step, index)
    finally:
        place.abandon(step)
    for held in checkpoint.elsewhere:
        held.let_go()
    for old in place.steps()[:-keep]:
        place.drop(old)
    encoded = index.encode()
    size = len(encoded) + sum(file.bytes for file in files)
    return Saved(name_of(step), size, hashlib.sha256(encoded).hexdigest())


def steps(place: CheckpointPlace | Path) -> list[int]:
    """The steps with a complete checkpoint, ascending."""
    return _at(place).steps()


def is_saved(place: CheckpointPlace, checkpoint: Checkpoint) -> bool:
    """Whether its step is there with the same state. Tensors are not compared."""
    try:
        record = json.loads(place.index(checkpoint.step))
    except (OSError, ValueError):
        return False
    return bool(record["state"] == json.loads(json.dumps(checkpoint.state)))


def load_newest(place: CheckpointPlace | Path, owners: Collection[str] = ()) -> Loaded | None:
    """The newest checkpoint whose files are as they were written, with tensors of all these `owners`; None if there is none
    at all.

    Raises CheckpointInvalid if there are some and none of them is complete.
    """
    place, problems = _at(place), []
    for step in reversed(place.steps()):
        try:
            return load_step(place, step, owners)
        except CheckpointInvalid as error:
            problems.append(str(error))
    if problems:
        raise CheckpointInvalid("; ".join(problems))
    return None


def load(path: Path) -> Loaded:
    """The checkpoint in the folder `path`. Raises CheckpointInvalid for a missing, damaged or foreign file."""
    try:
        step = step_of(path.name)
    except ValueError as error:
        raise CheckpointInvalid(f"{path}: a checkpoint is a folder such as {name_of(10)}") from error
    return load_step(Folder(path.parent), step)


def load_step(place: CheckpointPlace, step: int, owners: Collection[str] = ()) -> Loaded:
    """Raises CheckpointInvalid for a missing, damaged or foreign file, and if one of `owners` has no tensors."""
    try:
        record = json.loads(place.index(step))
    except (OSError, ValueError) as error:
        raise CheckpointInvalid(f"{place.named(step)}: {INDEX} cannot be read ({error})") from error
    if record.get("format") not in (_WHOLE, _FORMAT):
        raise CheckpointInvalid(
            f"{place.named(step)}: its format is {record.get('format')!r}, and this version of the program reads formats up to {_FORMAT}; "
            "resume the run with the version that wrote it"
        )
    found: dict[str, list[tuple[Path, Mapping[str, tuple[int, int]]]]] = {}
    for file in _files(record):
        path = place.file(step, file.name)
        if not path.is_file() or digest_of(path) != file.digest:
            raise CheckpointInvalid(f"{place.named(step)}/{file.name}: the file is missing or was changed")
        found.setdefault(file.owner, []).append((path, file.rows))
    if missing := [owner for owner in owners if owner not in found]:
        raise CheckpointInvalid(f"{place.named(step)}: there is no file of {' and '.join(missing)}")
    tensors = {owner: StoredTensors(files) for owner, files in found.items()}
    for owner, stored in tensors.items():
        if lacking := stored.lacks():
            raise CheckpointInvalid(f"{place.named(step)}: rows of {owner} {lacking} are missing")
    return Loaded(record["step"], record["state"], tensors)


def _at(place: CheckpointPlace | Path) -> CheckpointPlace:
    return Folder(place) if isinstance(place, Path) else place


def _index(checkpoint: Checkpoint, files: Sequence[File]) -> str:
    told = {file.name: {"owner": file.owner, "digest": file.digest, "rows": file.rows} for file in files}
    record = {"format": _FORMAT, "step": checkpoint.step, "state": checkpoint.state, "files": told}
    return json.dumps(record, sort_keys=True)  # without lines: Python has no quick writer of indented JSON


def _files(record: Mapping[str, Any]) -> list[File]:
    files = record["files"]
    if record["format"] == _WHOLE:
        return [File(f"{owner}.safetensors", owner, digest) for owner, digest in files.items()]
    return [
        File(name, told["owner"], told["digest"], rows={key: (start, of) for key, (start, of) in told["rows"].items()})
        for name, told in files.items()
    ]
