"""Checkpoints are complete or absent, and hold exactly what was saved."""

import errno
import hashlib
import json
import os
import shutil
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pytest
import torch
from safetensors.torch import save_file

from trainer import checkpoints
from trainer.checkpoints import (
    Checkpoint,
    CheckpointInvalid,
    CheckpointPlace,
    File,
    Rows,
    StoredTensors,
    shares,
    write_share,
)


def checkpoint(step: int) -> Checkpoint:
    tensors = {"policy": {"w": torch.full((3,), float(step))}, "optimizer": {"exp_avg:w": torch.zeros(3)}}
    return Checkpoint(step, {"position": step * 2}, tensors)


def test_what_is_loaded_is_what_was_saved(tmp_path: Path) -> None:
    saved = checkpoints.save(tmp_path, checkpoint(7), keep=2)
    loaded = checkpoints.load(tmp_path / saved.name)
    assert (loaded.step, loaded.state) == (7, {"position": 14})
    assert torch.equal(loaded.tensors["policy"]["w"], torch.full((3,), 7.0))
    assert saved.bytes == sum(file.stat().st_size for file in (tmp_path / saved.name).iterdir())


def test_equal_content_has_an_equal_digest(tmp_path: Path) -> None:
    first = checkpoints.save(tmp_path / "a", checkpoint(1), keep=1)
    assert checkpoints.save(tmp_path / "b", checkpoint(1), keep=1).digest == first.digest
    assert checkpoints.save(tmp_path / "b", checkpoint(2), keep=1).digest != first.digest


def test_only_safetensors_and_json_are_written(tmp_path: Path) -> None:
    saved = checkpoints.save(tmp_path, checkpoint(1), keep=1)
    assert {file.suffix for file in (tmp_path / saved.name).iterdir()} == {".safetensors", ".json"}


def test_the_newest_are_kept(tmp_path: Path) -> None:
    for step in (1, 2, 3, 4):
        checkpoints.save(tmp_path, checkpoint(step), keep=2)
    assert checkpoints.steps(tmp_path) == [3, 4]
    newest = checkpoints.load_newest(tmp_path)
    assert newest is not None and newest.step == 4


def test_nothing_saved_yet_is_not_an_error(tmp_path: Path) -> None:
    assert checkpoints.load_newest(tmp_path / "absent") is None


def test_a_write_that_fails_leaves_the_earlier_checkpoint(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    checkpoints.save(tmp_path, checkpoint(1), keep=1)

    def full(*_: Any) -> None:
        raise OSError(errno.ENOSPC, "No space left on device")

    monkeypatch.setattr(shares, "save_file", full)
    with pytest.raises(OSError, match="No space"):
        checkpoints.save(tmp_path, checkpoint(2), keep=1)
    assert checkpoints.steps(tmp_path) == [1]
    assert [path.name for path in tmp_path.iterdir()] == ["step-000001"]


def test_what_a_kill_left_half_written_is_not_seen(tmp_path: Path) -> None:
    (tmp_path / ".step-000009.partial").mkdir()
    assert checkpoints.load_newest(tmp_path) is None
    checkpoints.save(tmp_path, checkpoint(9), keep=1)
    assert checkpoints.steps(tmp_path) == [9]


def test_a_damaged_checkpoint_gives_way_to_the_one_before(tmp_path: Path) -> None:
    for step in (1, 2):
        checkpoints.save(tmp_path, checkpoint(step), keep=2)
    (tmp_path / "step-000002" / "policy.safetensors").write_bytes(b"")
    newest = checkpoints.load_newest(tmp_path)
    assert newest is not None and newest.step == 1
    (tmp_path / "step-000001" / "state.json").write_text("{")
    with pytest.raises(CheckpointInvalid, match="step-000002.*step-000001"):
        checkpoints.load_newest(tmp_path)


def test_a_checkpoint_of_another_format_is_refused(tmp_path: Path) -> None:
    saved = checkpoints.save(tmp_path, checkpoint(1), keep=1)
    state = tmp_path / saved.name / "state.json"
    state.write_text(state.read_text().replace('"format": 2', '"format": 99'))
    with pytest.raises(CheckpointInvalid, match="format is 99"):
        checkpoints.load(tmp_path / saved.name)


def test_a_checkpoint_of_the_first_releases_is_read(tmp_path: Path) -> None:
    """Writes format 1 as programs did then: a file for each owner, and its digest."""
    folder = tmp_path / "step-000004"
    folder.mkdir()
    files = {}
    for owner, tensors in checkpoint(4).tensors.items():
        save_file(dict(tensors), folder / f"{owner}.safetensors")
        files[owner] = hashlib.sha256((folder / f"{owner}.safetensors").read_bytes()).hexdigest()
    record = {"format": 1, "step": 4, "state": {"position": 8}, "files": files}
    (folder / "state.json").write_text(json.dumps(record))
    newest = checkpoints.load_newest(tmp_path)
    assert newest is not None and (newest.step, newest.state) == (4, {"position": 8})
    assert torch.equal(newest.tensors["policy"]["w"], torch.full((3,), 4.0))
    assert newest.tensors.keys() == {"policy", "optimizer"}


def test_rows_of_several_files_are_one_tensor(tmp_path: Path) -> None:
    w = torch.arange(14.0).reshape(7, 2)
    files = shared(tmp_path, [(w[:3], 0), (w[3:6], 3), (w[6:], 6)])
    stored = files["policy"]
    assert stored.shape("w") == (7, 2) and torch.equal(stored["w"], w)
    for start in range(8):
        for stop in range(start, 8):
            assert torch.equal(stored.rows("w", start, stop), w[start:stop])
    # an open file stays readable, because a run keeps only its newest checkpoints
    shutil.rmtree(tmp_path / "step-000001")
    assert torch.equal(stored["w"], w)


def test_a_checkpoint_without_the_rows_of_one_process_is_refused(tmp_path: Path) -> None:
    w = torch.arange(6.0).reshape(3, 2)
    with pytest.raises(CheckpointInvalid, match="rows of policy w are missing"):
        shared(tmp_path, [(w[:1], 0), (w[2:], 2)])


def shared(root: Path, parts: list[tuple[torch.Tensor, int]]) -> Mapping[str, StoredTensors]:
    """Saves step 1 by several processes. Each holds these rows of one tensor."""
    rows = max(start + len(tensor) for tensor, start in parts)

    class Processes:
        bytes = 0

        def keep(self) -> None:
            pass

        def let_go(self) -> None: ...

        def write(self, place: CheckpointPlace, step: int) -> list[File]:
            return [
                write_share(place, step, "policy", {"w": Rows(tensor.clone(), start, rows)}, rank, len(parts))
                for rank, (tensor, start) in enumerate(parts)
            ]

    checkpoints.save(root, Checkpoint(1, {}, {}, (Processes(),)), keep=1)
    newest = checkpoints.load_newest(root)
    assert newest is not None
    return newest.tensors


@pytest.mark.parametrize("call", [1, 2])
def test_a_kill_while_a_step_is_published_again_leaves_one_of_the_two(
    call: int, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    checkpoints.save(tmp_path, checkpoint(1), keep=1)
    replace, calls = os.replace, 0

    def killed(*paths: Any) -> None:
        nonlocal calls
        calls += 1
        if calls == call:
            raise KeyboardInterrupt
        replace(*paths)

    with monkeypatch.context() as patched:
        patched.setattr(os, "replace", killed)
        with pytest.raises(KeyboardInterrupt):
            checkpoints.save(tmp_path, checkpoint(1), keep=1)
    assert checkpoints.steps(tmp_path) == [1]
    newest = checkpoints.load_newest(tmp_path)
    assert newest is not None and torch.equal(newest.tensors["policy"]["w"], torch.ones(3))
    checkpoints.save(tmp_path, checkpoint(1), keep=1)
    assert [path.name for path in tmp_path.iterdir()] == ["step-000001"]
    checkpoints.save(tmp_path, checkpoint(2), keep=1)
    assert [path.name for path in tmp_path.iterdir()] == ["step-000002"]


def test_a_step_that_lacks_an_owner_gives_way_to_the_one_before(tmp_path: Path) -> None:
    checkpoints.save(tmp_path, checkpoint(1), keep=2)
    checkpoints.save(tmp_path, Checkpoint(2, {}, {"policy": {"w": torch.zeros(3)}}), keep=2)
    newest = checkpoints.load_newest(tmp_path, ("policy", "optimizer"))
    assert newest is not None and newest.step == 1
    with pytest.raises(CheckpointInvalid, match="no file of optimizer"):
        checkpoints.load_step(checkpoints.Folder(tmp_path), 2, ("policy", "optimizer"))
