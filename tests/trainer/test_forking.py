"""Parts of one job, each in a copy of this process: how they end by themselves, and how they are ended."""

import os
import signal
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path

import pytest

from tests.timeouts import SECONDS
from trainer import forking
from trainer.forking import in_processes

PROGRAM = """
import os, signal, sys, time
from collections.abc import Callable
from pathlib import Path
from trainer.forking import in_processes

folder = Path(sys.argv[1])

def work(name, status):
    def stop(*_):
        sys.exit(status)
    signal.signal(signal.SIGTERM, stop)
    (folder / f"{name}.partial").write_text(str(os.getpid()))
    (folder / f"{name}.partial").rename(folder / name)
    time.sleep(600)

sys.exit(in_processes([lambda: work("a", 0), lambda: work("b", 3)]))
"""


def started(folder: Path) -> tuple["subprocess.Popen[str]", list[int]]:
    running = subprocess.Popen([sys.executable, "-c", PROGRAM, str(folder)], stderr=subprocess.PIPE, text=True)
    until(lambda: all((folder / name).exists() for name in "ab"))
    return running, [int((folder / name).read_text()) for name in "ab"]


def until(condition: Callable[[], bool]) -> None:
    deadline = time.monotonic() + SECONDS
    while not condition():
        assert time.monotonic() < deadline
        time.sleep(0.01)


def is_there(pid: int) -> bool:
    """Whether the process runs. A dead process that its parent has not waited for does not run."""
    try:
        return Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0] not in "ZX"
    except OSError:
        return False


def test_the_greatest_status_counts_and_each_work_has_its_own_process(tmp_path: Path) -> None:
    def work(name: str, status: int) -> int:
        (tmp_path / name).write_text(str(os.getpid()))
        return status

    before = [signal.getsignal(number) for number in (signal.SIGTERM, signal.SIGINT)]
    assert in_processes([lambda: work("a", 0), lambda: work("b", 3), lambda: work("c", 1)]) == 3
    assert len({str(os.getpid()), *((tmp_path / name).read_text() for name in "abc")}) == 4
    assert [signal.getsignal(number) for number in (signal.SIGTERM, signal.SIGINT)] == before


def test_a_single_work_is_done_here() -> None:
    assert in_processes([os.getpid]) == os.getpid()


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGINT])
def test_a_stop_reaches_all(tmp_path: Path, number: signal.Signals) -> None:
    running, _ = started(tmp_path)
    running.send_signal(number)
    assert running.wait(SECONDS) == 3


def test_if_one_is_killed_the_others_end_too(tmp_path: Path) -> None:
    running, (one, other) = started(tmp_path)
    os.kill(one, signal.SIGKILL)
    said = running.communicate(timeout=SECONDS)[1]
    assert running.returncode == 1 and f"process {one} was killed by signal 9" in said
    assert not is_there(other)


def test_one_that_ends_between_two_looks_is_seen(monkeypatch: pytest.MonkeyPatch) -> None:
    """Its pipe is closed before its status is there. An earlier version asked twice, lost it between the two, and waited for ever."""

    class Ending:
        sentinel, pid = 0, 7

        def __init__(self, *codes: int | None) -> None:
            self.codes = list(codes)

        @property
        def exitcode(self) -> int | None:
            return self.codes.pop(0) if len(self.codes) > 1 else self.codes[0]

        def kill(self) -> None:
            self.codes = [-signal.SIGKILL]

    looks = iter(range(10))  # the old version looked again and again
    monkeypatch.setattr(forking, "wait", lambda sentinels: next(looks))
    killed, other = Ending(None, -signal.SIGKILL), Ending(None)
    assert forking._awaited([killed, other]) == 1  # type: ignore[list-item]
    assert other.exitcode == -signal.SIGKILL


def test_none_outlives_the_process_that_started_them(tmp_path: Path) -> None:
    running, both = started(tmp_path)
    running.kill()
    running.wait(SECONDS)
    until(lambda: not any(is_there(pid) for pid in both))
