"""Processes that hold a share each keep it until the checkpoint is whole, and write no other step's share. Their actors are in this
process, because only the order of the calls matters.
"""

import errno
import threading
from collections.abc import Callable
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
import ray
import torch

from tests.timeouts import SECONDS
from trainer import checkpoints
from trainer.checkpoints import Folder, Rows
from trainer.loops.session import saving
from trainer.loops.session.session import Session
from trainer.loops.session.stage import State
from trainer.runners import ray_learner

from ..loops.conftest import make_loop, small_config

__all__ = ["make_loop"]
PROCESSES = 2


class Called:
    """An actor that runs a call when it is made."""

    def __init__(self, rank: int, w: torch.Tensor) -> None:
        config = SimpleNamespace(optim=SimpleNamespace(processes=PROCESSES))
        plain = ray_learner.LearnerActor.__ray_metadata__.modified_class  # type: ignore[attr-defined]
        self._actor = plain(config, rank, torch.get_num_threads())
        rows = Rows(w[rank * 2 : rank * 2 + 2], rank * 2, len(w))
        self._actor._learner = SimpleNamespace(shares=lambda: {"policy": {"w": rows}, "optimizer": {"m": rows}})

    def __getattr__(self, name: str) -> Any:
        return SimpleNamespace(remote=getattr(self._actor, name))


@pytest.fixture
def w() -> torch.Tensor:
    return torch.zeros(2 * PROCESSES)


@pytest.fixture
def session(make_loop: Callable[..., Session], w: torch.Tensor, monkeypatch: pytest.MonkeyPatch) -> Session:  # noqa: F811
    monkeypatch.setattr(saving, "AT_ONCE_BYTES", 0)
    monkeypatch.setattr(ray, "get", lambda found: found)
    session = make_loop(small_config())
    actors = [Called(rank, w) for rank in range(PROCESSES)]
    monkeypatch.setattr(
        session.stage, "state", lambda: State({}, {}, (ray_learner._Processes(actors, list),)), raising=True
    )
    return session


def saved(session: Session, step: int) -> list[float]:
    loaded = checkpoints.load_step(session._place, step, ("policy", "optimizer"))
    assert torch.equal(loaded.tensors["policy"]["w"], loaded.tensors["optimizer"]["m"])
    return loaded.tensors["policy"]["w"].tolist()


def test_a_checkpoint_under_way_keeps_its_shares_while_the_next_is_due(
    session: Session, w: torch.Tensor, monkeypatch: pytest.MonkeyPatch
) -> None:
    gate, inside, put = threading.Event(), threading.Event(), Folder.put

    def waiting(*arguments: Any) -> None:
        inside.set()
        assert gate.wait(SECONDS)
        put(*arguments)

    monkeypatch.setattr(Folder, "put", waiting)
    session.step = 1
    session.save()
    assert inside.wait(SECONDS)
    w.fill_(2.0)
    session.step = 2
    threading.Timer(0.2, gate.set).start()
    session.save()
    session._saver.settle()
    assert (saved(session, 1), saved(session, 2)) == ([0.0] * len(w), [2.0] * len(w))


@pytest.mark.parametrize("wait", [True, False])
def test_a_disk_that_fills_at_the_last_file_costs_no_share(
    wait: bool, session: Session, w: torch.Tensor, monkeypatch: pytest.MonkeyPatch
) -> None:
    publish, failures = Folder.publish, [OSError(errno.ENOSPC, "No space left on device")]

    def failing(folder: Folder, step: int, index: str) -> None:
        if failures:
            raise failures.pop()
        publish(folder, step, index)

    monkeypatch.setattr(Folder, "publish", failing)
    session.job.monitor._retry_s = 0.01
    session.save(wait)
    session._saver.settle()
    assert not failures and saved(session, 0) == [0.0] * len(w)


def test_published_shares_are_let_go(session: Session, tmp_path: Path) -> None:
    session.save(wait=True)
    (processes,) = session.stage.state().elsewhere
    with pytest.raises(RuntimeError, match="process 0 holds nothing"):
        processes._actors[0].write.remote(Folder(tmp_path), 0)  # type: ignore[attr-defined]
