"""Events on disk: numbered once and complete, also after restarts and with a full disk."""

import errno
import json
import os
import threading
import time
from pathlib import Path

import pytest

from tests.timeouts import SECONDS
from trainer.contracts import ArtifactData, LogData, RunEvent, StateData, jsonlines
from trainer.monitors import RunMonitor, Spool


def events(path: Path) -> list[RunEvent]:
    return [RunEvent.model_validate_json(line) for line in jsonlines.lines(path.read_text())]


def note(text: str) -> LogData:
    return LogData(message=text)


@pytest.fixture
def path(tmp_path: Path) -> Path:
    return tmp_path / "run" / "events.jsonl"


def test_events_are_numbered_from_one(path: Path) -> None:
    spool = Spool(path)
    spool.append(note("a"), step=3)
    spool.append(note("b"))
    assert [(event.seq, event.step) for event in events(path)] == [(1, 3), (2, 0)]


def test_numbers_go_on_after_a_restart(path: Path) -> None:
    Spool(path).append(note("a"))
    Spool(path).append(note("b"))
    assert [event.seq for event in events(path)] == [1, 2]


def test_a_lost_folder_goes_on_from_what_the_server_knows(path: Path) -> None:
    assert Spool(path, last_seq=57).append(note("a")).seq == 58


@pytest.mark.parametrize("length", [1, 65_000, 65_536, 200_000])
@pytest.mark.parametrize("torn", ["", "{", "x" * 70_000])
def test_a_restart_finds_the_last_whole_line_however_long_lines_are(path: Path, length: int, torn: str) -> None:
    first = Spool(path)
    first.append(note("a"))
    first.append(note("b" * length))
    with path.open("a") as file:
        file.write(torn)
    Spool(path).append(note("c"))
    assert [event.seq for event in events(path)] == [1, 2, 3]


@pytest.mark.parametrize("content", ["", "{", "x" * 70_000])
def test_a_spool_without_a_whole_line_begins_anew(path: Path, content: str) -> None:
    path.parent.mkdir()
    path.write_text(content)
    Spool(path).append(note("a"))
    assert [event.seq for event in events(path)] == [1]


def test_a_line_torn_by_a_kill_is_cut_off(path: Path) -> None:
    Spool(path).append(note("a"))
    with path.open("a") as file:
        file.write('{"seq": 2, "ti')
    Spool(path).append(note("b"))
    assert [event.data.message for event in events(path) if isinstance(event.data, LogData)] == ["a", "b"]


class FullDisk:
    """Refuses writes while `full`, after writing half of the block, like a real disk."""

    def __init__(self) -> None:
        self.full = False
        self.refused = threading.Event()

    def __call__(self, file: int, block: bytes) -> int:
        if self.full:
            os.write(file, block[: len(block) // 2])
            self.refused.set()
            raise OSError(errno.ENOSPC, "No space left on device")
        return os.write(file, block)


def test_a_full_disk_pauses_the_run_and_loses_nothing(path: Path) -> None:
    disk = FullDisk()
    spool = Spool(path, retry_s=0.01, write=disk)
    spool.append(note("before"))
    disk.full = True
    writer = threading.Thread(target=spool.append, args=(note("during"),))
    writer.start()
    assert disk.refused.wait(SECONDS)
    while len(spool.tail()) < 2:
        pass
    waiting = [json.loads(line)["data"] for line in spool.tail()]
    assert [data.get("state") or data["message"] for data in waiting] == ["during", "paused"]
    assert writer.is_alive()
    disk.full = False
    writer.join(SECONDS)
    spool.append(note("after"))
    said = [getattr(event.data, "message", None) or event.data.state for event in events(path)]
    assert said == ["before", "during", "paused", "running", "after"]
    assert [event.seq for event in events(path)] == [1, 2, 3, 4, 5]


def test_waiting_for_a_full_disk_ends_when_the_run_is_given_up(path: Path) -> None:
    disk = FullDisk()
    spool = Spool(path, retry_s=0.01, write=disk)
    spool.give_up = lambda: True
    disk.full = True
    spool.append(note("lost cause"))
    assert [json.loads(line)["seq"] for line in spool.tail()] == [1, 2, 3]
    assert not RunMonitor(spool).close(), "no server has it either"


def test_any_other_error_of_the_disk_is_not_waited_for(path: Path) -> None:
    def broken(file: int, block: bytes) -> int:
        raise OSError(errno.EIO, "Input/output error")

    with pytest.raises(OSError, match="Input/output"):
        Spool(path, write=broken).append(note("a"))


@pytest.fixture
def syncs(monkeypatch: pytest.MonkeyPatch, path: Path) -> list[int]:
    """The number of lines in the file at each sync."""
    found: list[int] = []
    monkeypatch.setattr(os, "fsync", lambda file: found.append(len(events(path))))
    return found


def test_states_and_artifacts_are_synced_at_once_with_all_events_before_them(path: Path, syncs: list[int]) -> None:
    spool = Spool(path)
    for _ in range(20):
        spool.append(note("a"))
    assert syncs == []
    spool.append(ArtifactData(role="checkpoint", path="checkpoints/step-000001", bytes=1, digest="0" * 64))
    spool.append(note("b"))
    spool.append(StateData(state="finished"))
    assert syncs == [21, 23]


def test_other_events_are_synced_a_second_after_the_last_time(
    path: Path, syncs: list[int], monkeypatch: pytest.MonkeyPatch
) -> None:
    now = [100.0]
    monkeypatch.setattr(time, "monotonic", lambda: now[0])
    spool = Spool(path)
    for _ in range(7):
        spool.append(note("a"))
        now[0] += 0.4
    assert syncs == [4, 7]


def test_a_checkpoint_is_written_after_all_events_before_it_are_synced(path: Path, syncs: list[int]) -> None:
    monitor = RunMonitor(Spool(path))
    monitor.log("a")
    monitor.flush()
    assert syncs == [1]
    monitor.flush()
    assert syncs == [1], "nothing is new"
    monitor.log("b")
    assert monitor.close()
    assert syncs == [1, 2]


def test_a_disk_that_is_full_only_when_it_is_synced_loses_nothing(path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    full = [True]

    def fsync(file: int) -> None:
        if full[0]:
            raise OSError(errno.EDQUOT, "Disk quota exceeded")

    monkeypatch.setattr(os, "fsync", fsync)
    spool = Spool(path)
    spool.append(note("a"))
    assert [event.seq for event in events(path)] == [1]
    assert not spool.settle()
    assert (events(path), [json.loads(line)["seq"] for line in spool.tail()]) == ([], [1])
    full[0] = False
    spool.append(note("b"))
    assert spool.settle()
    assert ([event.seq for event in events(path)], spool.tail()) == ([1, 2], [])
