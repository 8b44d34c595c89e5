"""A session saves the step that it says and does not write it twice, whether or not the checkpoint before succeeds."""

import threading
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
import torch

from tests.timeouts import SECONDS
from trainer import checkpoints
from trainer.checkpoints import Folder
from trainer.loops.session import saving
from trainer.loops.session.errors import StopRequested
from trainer.loops.session.session import Session
from trainer.storing import StorageAway

from ..conftest import small_config


@pytest.fixture
def published(monkeypatch: pytest.MonkeyPatch) -> list[int]:
    """The steps, each as often as it was published."""
    found: list[int] = []
    publish = Folder.publish

    def noting(folder: Folder, step: int, index: str) -> None:
        found.append(step)
        publish(folder, step, index)

    monkeypatch.setattr(Folder, "publish", noting)
    return found


@pytest.fixture
def session(make_loop: Callable[..., Session], monkeypatch: pytest.MonkeyPatch) -> Session:
    monkeypatch.setattr(saving, "AT_ONCE_BYTES", 0)
    return make_loop(small_config())


def test_a_stop_in_the_next_step_writes_nothing_again(session: Session, published: list[int]) -> None:
    step = session.stage.step

    def stopped(number: int, tell: Any) -> None:
        if number == 2:
            raise StopRequested
        step(number, tell)

    session.stage.step = stopped  # type: ignore[method-assign]
    with pytest.raises(StopRequested):
        session.run()
    assert session.step == 1 and published == [1]


def test_a_step_is_written_again_where_more_is_known_of_it(session: Session, published: list[int]) -> None:
    session.save(wait=True)
    session.summary["reward/mean"] = 1.0
    session.save(wait=True)
    session.save(wait=True)
    assert published == [0, 0]


def test_what_was_resumed_from_is_not_written_again(
    session: Session, make_loop: Callable[..., Session], published: list[int]
) -> None:
    session.save(wait=True)
    again = make_loop(small_config())
    assert again.resume()
    again.save(wait=True)
    assert published == [0]


def test_a_step_that_the_run_has_not_read_is_written_anew(
    session: Session, make_loop: Callable[..., Session], published: list[int]
) -> None:
    """The checkpoint may be damaged: a run that continued from an earlier one reaches this step again."""
    session.save(wait=True)
    make_loop(small_config()).save(wait=True)
    assert published == [0, 0]


def test_what_comes_after_a_checkpoint_is_not_told_in_it(session: Session, monkeypatch: pytest.MonkeyPatch) -> None:
    gate, put = threading.Event(), Folder.put

    def waiting(*arguments: Any) -> None:
        assert gate.wait(SECONDS)
        put(*arguments)

    monkeypatch.setattr(Folder, "put", waiting)
    session.save()
    session.summary["reward/mean"] = 1.0
    gate.set()
    session._saver.settle()
    newest = checkpoints.load_newest(session._place)
    assert newest is not None and newest.state["summary"] == {}


def test_a_checkpoint_that_could_not_be_stored_does_not_cost_the_next(
    session: Session, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    def away(*_: Any) -> None:
        raise StorageAway("the storage does not answer")

    monkeypatch.setattr(session.job.monitor, "artifact", away)
    session.save()
    session._saver._thread.submit(int).result()  # behind it
    session.job.monitor.request_stop()
    session._saver.look()
    session.step = 1
    with pytest.raises(StorageAway):
        session.save(wait=True)
    assert checkpoints.steps(tmp_path / "run" / "checkpoints") == [0, 1]


def test_a_checkpoint_without_weights_gives_way_to_the_one_before(
    session: Session, make_loop: Callable[..., Session]
) -> None:
    session.save(wait=True)
    checkpoints.save(session._place, checkpoints.Checkpoint(1, {}, {"round": {"r": torch.zeros(1)}}), keep=9)
    again = make_loop(small_config())
    assert again.resume() and again.step == 0
