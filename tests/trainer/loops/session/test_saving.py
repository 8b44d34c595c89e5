"""Checkpoints are written one after the other while training continues. An error in one is reported."""

import errno
import threading
from pathlib import Path

import pytest
import torch

from tests.timeouts import SECONDS
from trainer import checkpoints
from trainer.checkpoints import Checkpoint, Folder
from trainer.loops.session import saving
from trainer.loops.session.saving import Saver
from trainer.monitors import RunMonitor, Spool

from ..conftest import events_of


class Slow(Folder):
    """A store that publishes when it is allowed to, or fails."""

    gate = threading.Event()
    failures: list[OSError] = []  # noqa: RUF012 - emptied by each test

    def publish(self, step: int, index: str) -> None:
        assert self.gate.wait(SECONDS)
        if self.failures:
            raise self.failures.pop()
        super().publish(step, index)


@pytest.fixture
def place(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Slow:
    monkeypatch.setattr(saving, "AT_ONCE_BYTES", 0)
    Slow.gate = threading.Event()
    Slow.failures = []
    return Slow(tmp_path / "run" / "checkpoints")


@pytest.fixture
def saver(place: Slow, tmp_path: Path) -> Saver:
    return Saver(place, 2, RunMonitor(Spool(tmp_path / "run" / "events.jsonl"), retry_s=0.01))


def weights(value: float, step: int = 1) -> Checkpoint:
    return Checkpoint(step, {}, {"policy": {"w": torch.full((4,), value)}})


def test_training_goes_on_and_what_it_changes_is_not_saved(place: Slow, saver: Saver) -> None:
    checkpoint = weights(1.0)
    saver.save(checkpoint, wait=False)
    checkpoint.tensors["policy"]["w"].fill_(2.0)
    assert place.steps() == []
    place.gate.set()
    saver.settle()
    newest = checkpoints.load_newest(place)
    assert newest is not None and newest.tensors["policy"]["w"].tolist() == [1.0] * 4
    saver.close()


def test_it_is_told_when_it_is_there(place: Slow, saver: Saver, tmp_path: Path) -> None:
    saver.save(weights(1.0), wait=False)
    assert events_of(tmp_path / "run") == []
    place.gate.set()
    saver.settle()
    (event,) = events_of(tmp_path / "run")
    assert event.data.kind == "artifact" and event.data.path == "checkpoints/step-000001" and event.step == 1
    folder = tmp_path / "run" / event.data.path
    assert event.data.bytes == sum(file.stat().st_size for file in folder.iterdir())
    saver.close()


def test_a_second_one_waits_for_the_first(place: Slow, saver: Saver) -> None:
    saver.save(weights(1.0), wait=False)
    threading.Timer(0.05, place.gate.set).start()
    saver.save(weights(2.0, step=2), wait=True)
    assert place.steps() == [1, 2]
    saver.close()


def test_a_disk_that_was_full_is_waited_for_by_the_run(place: Slow, saver: Saver, tmp_path: Path) -> None:
    place.gate.set()
    place.failures.append(OSError(errno.ENOSPC, "No space left on device"))
    place.failures.append(OSError(errno.ENOSPC, "No space left on device"))
    saver.save(weights(1.0), wait=False)
    saver.settle()
    assert place.steps() == [1]
    told = [event.data.state for event in events_of(tmp_path / "run") if event.data.kind == "state"]
    assert told == ["paused", "running"]
    saver.close()


def test_another_failure_ends_the_run(place: Slow, saver: Saver) -> None:
    place.gate.set()
    place.failures.append(OSError(errno.EIO, "Input/output error"))
    saver.save(weights(1.0), wait=False)
    with pytest.raises(OSError, match="Input/output error"):
        saver.settle()
    saver.settle()
    assert place.steps() == []
    saver.close()
