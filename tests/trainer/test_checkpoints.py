"""Checkpoints: complete or absent, and exactly what was saved."""

import errno
from pathlib import Path
from typing import Any

import pytest
import torch

from trainer import checkpoints
from trainer.checkpoints import Checkpoint, CheckpointInvalid


def checkpoint(step: int) -> Checkpoint:
    tensors = {"policy": {"w": torch.full((3,), float(step))}, "optimizer": {"exp_avg:w": torch.zeros(3)}}
    return Checkpoint(step, {"position": step * 2}, tensors)


def test_what_is_loaded_is_what_was_saved(tmp_path: Path) -> None:
    saved = checkpoints.save(tmp_path, checkpoint(7), keep=2)
    loaded = checkpoints.load(saved.path)
    assert (loaded.step, loaded.state) == (7, {"position": 14})
    assert torch.equal(loaded.tensors["policy"]["w"], torch.full((3,), 7.0))
    assert saved.bytes == sum(file.stat().st_size for file in saved.path.iterdir())


def test_equal_content_has_an_equal_digest(tmp_path: Path) -> None:
    first = checkpoints.save(tmp_path / "a", checkpoint(1), keep=1)
    assert checkpoints.save(tmp_path / "b", checkpoint(1), keep=1).digest == first.digest
    assert checkpoints.save(tmp_path / "b", checkpoint(2), keep=1).digest != first.digest


def test_only_safetensors_and_json_are_written(tmp_path: Path) -> None:
    saved = checkpoints.save(tmp_path, checkpoint(1), keep=1)
    assert {file.suffix for file in saved.path.iterdir()} == {".safetensors", ".json"}


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

    monkeypatch.setattr(checkpoints, "save_file", full)
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
    state = saved.path / "state.json"
    state.write_text(state.read_text().replace('"format": 1', '"format": 99'))
    with pytest.raises(CheckpointInvalid, match="format 99"):
        checkpoints.load(saved.path)
