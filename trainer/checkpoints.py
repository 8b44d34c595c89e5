"""Checkpoints of safetensors and JSON: nothing in them is ever executed.

A checkpoint is a folder `step-000010` with the tensors of each owner of state (`policy.safetensors`,
`optimizer.safetensors`) and `state.json`. It is written beside its final name, flushed to disk and renamed: a folder with
the final name is complete, whatever killed the process.
"""

import hashlib
import json
import os
import shutil
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from safetensors.torch import load_file, save_file
from torch import Tensor

_FORMAT = 1


class CheckpointInvalid(ValueError):
    """A checkpoint that cannot be resumed from; the message says which and why."""


@dataclass(frozen=True)
class Checkpoint:
    """`state` is plain JSON; `tensors` maps an owner such as `policy` to its named tensors."""

    step: int
    state: dict[str, Any]
    tensors: dict[str, dict[str, Tensor]]


@dataclass(frozen=True)
class Saved:
    path: Path
    bytes: int
    digest: str
    """SHA-256 over the digests of the tensor files and the state."""


def save(folder: Path, checkpoint: Checkpoint, keep: int) -> Saved:
    """Write the checkpoint, then delete all but the newest `keep`. Raises OSError; what was there before stays."""
    final = folder / f"step-{checkpoint.step:06d}"
    partial = folder / f".{final.name}.partial"
    shutil.rmtree(partial, ignore_errors=True)
    partial.mkdir(parents=True)
    try:
        saved = _write(partial, checkpoint)
        # A resumed run reaches the same step again and writes the same content.
        shutil.rmtree(final, ignore_errors=True)
        os.replace(partial, final)
        _flush(folder)
    finally:
        shutil.rmtree(partial, ignore_errors=True)
    for old in steps(folder)[:-keep]:
        shutil.rmtree(folder / f"step-{old:06d}", ignore_errors=True)
    return Saved(final, *saved)


def steps(folder: Path) -> list[int]:
    """The steps with a complete checkpoint, ascending."""
    return sorted(int(path.name.removeprefix("step-")) for path in folder.glob("step-*") if path.is_dir())


def load_newest(folder: Path) -> Checkpoint | None:
    """The newest checkpoint whose files are what was written; None when there is none at all.

    Raises CheckpointInvalid when there are some and none of them is whole.
    """
    problems = []
    for step in reversed(steps(folder)):
        try:
            return load(folder / f"step-{step:06d}")
        except CheckpointInvalid as error:
            problems.append(str(error))
    if problems:
        raise CheckpointInvalid("; ".join(problems))
    return None


def load(path: Path) -> Checkpoint:
    """Raises CheckpointInvalid for a missing, damaged or foreign file."""
    try:
        record = json.loads((path / "state.json").read_text())
    except (OSError, ValueError) as error:
        raise CheckpointInvalid(f"{path}: state.json cannot be read ({error})") from error
    if record.get("format") != _FORMAT:
        raise CheckpointInvalid(f"{path}: format {record.get('format')!r}, this program reads {_FORMAT}")
    tensors = {}
    for owner, digest in record["files"].items():
        file = path / f"{owner}.safetensors"
        if not file.is_file() or _digest(file) != digest:
            raise CheckpointInvalid(f"{file}: missing or not what was written")
        tensors[owner] = load_file(file)
    return Checkpoint(step=record["step"], state=record["state"], tensors=tensors)


def _write(partial: Path, checkpoint: Checkpoint) -> tuple[int, str]:
    files = {}
    for owner, tensors in checkpoint.tensors.items():
        file = partial / f"{owner}.safetensors"
        save_file({name: tensor.detach().cpu().contiguous() for name, tensor in tensors.items()}, file)
        _flush(file)
        files[owner] = _digest(file)
    record = {"format": _FORMAT, "step": checkpoint.step, "state": checkpoint.state, "files": files}
    state_file = partial / "state.json"
    state_file.write_text(json.dumps(record, sort_keys=True, indent=1))
    _flush(state_file)
    _flush(partial)
    size = sum(file.stat().st_size for file in partial.iterdir())
    return size, _digest(state_file)


def _flush(path: Path) -> None:
    handle = os.open(path, os.O_RDONLY)
    try:
        os.fsync(handle)
    finally:
        os.close(handle)


def _digest(file: Path) -> str:
    with file.open("rb") as stream:
        return hashlib.file_digest(stream, "sha256").hexdigest()
