"""A separate thread makes the records: in order, limited in number, and on the disk before the checkpoint."""

import threading
from pathlib import Path
from typing import Any

import pytest

from tests.timeouts import SECONDS
from trainer.checkpoints import Checkpoint, Folder
from trainer.contracts import RolloutRecord
from trainer.loops.policy.reports import token_by_token
from trainer.loops.session.saving import Saver
from trainer.monitors import LeftUndone, RunMonitor, Spool
from trainer.monitors.worker_thread import AHEAD, Behind

from ..loops.conftest import events_of


def record(index: int) -> RolloutRecord:
    return RolloutRecord(example_key="k", group=0, index=index, prompt="p", response="r", finish_reason="stop")


def test_pieces_are_done_in_order_and_who_is_far_ahead_waits() -> None:
    behind, gate = Behind(), threading.Event()
    done: list[Any] = []
    behind.put(lambda: done.append(gate.wait(SECONDS)), "first")
    for number in range(AHEAD):
        behind.put(lambda number=number: done.append(number), str(number))  # type: ignore[misc]
    ahead = threading.Thread(target=behind.put, args=(lambda: done.append("last"), "last"))
    ahead.start()
    ahead.join(0.2)
    assert ahead.is_alive() and done == []
    gate.set()
    ahead.join(SECONDS)
    behind.flush()
    assert done == [True, *range(AHEAD), "last"]
    behind.close()


def test_what_goes_wrong_is_raised_once_by_who_comes_next_with_all_that_is_missing() -> None:
    behind, done = Behind(), []

    def fails() -> None:
        raise OSError("the disk is gone")

    behind.put(fails, "The first")
    behind._pieces.put((fails, "the second"))
    behind._pieces.put((lambda: done.append(1), "the third"))
    with pytest.raises(LeftUndone, match="^The first, the second could not be written: the disk is gone$"):
        behind.flush()
    behind.flush()
    assert done == [1]
    behind.close()


def test_what_has_no_words_is_told_by_its_kind() -> None:
    behind = Behind()

    def fails() -> None:
        raise MemoryError

    behind.put(fails, "Records of responses of step 3")
    with pytest.raises(LeftUndone, match="^Records of responses of step 3 could not be written: MemoryError$"):
        behind.flush()
    behind.close()


def test_nothing_is_written_by_the_thread_that_tells(tmp_path: Path) -> None:
    monitor, threads = RunMonitor(Spool(tmp_path / "events.jsonl")), set()

    def made() -> list[RolloutRecord]:
        threads.add(threading.current_thread().name)
        return [record(0)]

    monitor.rollouts(1, made)
    monitor.flush()
    assert threads == {"records"} and [event.data.kind for event in events_of(tmp_path)] == ["rollouts"]
    monitor.close()


def test_the_end_of_a_run_is_its_last_event(tmp_path: Path) -> None:
    monitor, gate = RunMonitor(Spool(tmp_path / "events.jsonl")), threading.Event()

    def slow() -> list[RolloutRecord]:
        assert gate.wait(SECONDS)
        return [record(0)]

    monitor.rollouts(1, slow)
    threading.Timer(0.05, gate.set).start()
    monitor.state("finished", step=1)
    assert [event.data.kind for event in events_of(tmp_path)] == ["rollouts", "state"]
    monitor.close()


def test_a_checkpoint_is_there_after_the_records_of_its_step(tmp_path: Path) -> None:
    """A run that is killed directly after this continues behind the step, and would never make these records again."""
    monitor, gate, there = RunMonitor(Spool(tmp_path / "events.jsonl")), threading.Event(), []
    folder = Folder(tmp_path / "checkpoints")

    def slow() -> list[RolloutRecord]:
        assert gate.wait(SECONDS)
        there.append(folder.steps())
        return [record(0)]

    monitor.rollouts(1, slow)
    threading.Timer(0.05, gate.set).start()
    saver = Saver(folder, 1, monitor)
    saver.save(Checkpoint(1, {}, {}), wait=True)
    assert there == [[]] and folder.steps() == [1]
    assert [event.data.kind for event in events_of(tmp_path)] == ["rollouts", "artifact"]
    saver.close()
    monitor.close()


@pytest.mark.parametrize("share", [0.0, 0.1, 0.25, 0.5, 1.0])
def test_the_share_of_prompts_is_kept_over_steps_and_within_them(share: float) -> None:
    per_step, steps = 4, 100
    shown = [
        sum(token_by_token(group, share, step * per_step) for group in range(per_step)) for step in range(1, steps + 1)
    ]
    assert sum(shown) == pytest.approx(share * per_step * steps, abs=1)
    assert max(shown) - min(shown) <= 1
