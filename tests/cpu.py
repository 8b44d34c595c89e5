"""Measures the processor time of tests: `CPU=FILE pytest ...` writes the processor seconds of each test to FILE, one JSON line for each.

Seconds on the clock say little on a machine that also does other things. This counts this process and all processes that it started: the
database, browsers, services, and children that have ended. Do not use parallel workers, because they share a database.
"""

import json
import os
import time
from collections.abc import Iterator
from pathlib import Path

import pytest

TICKS = os.sysconf("SC_CLK_TCK")
MARK = f"CPU_COUNTED_BY={os.getpid()}"  # a daemon inherits this variable, also after its parent has ended


class Counter:
    """The processor seconds of a tree of processes. They only grow, because the seconds of a dead child stay with the parent that waited
    for it.
    """

    def __init__(self) -> None:
        name, value = MARK.split("=")
        os.environ[name] = value
        self.own = 0.0
        self.ours: dict[tuple[int, int], bool] = {}  # for each process and start time: whether it belongs to us

    def seconds(self) -> float:
        """All seconds so far, without the seconds of the counting itself."""
        began = time.process_time()
        total = self._total()
        self.own += time.process_time() - began
        return total - self.own

    def _total(self) -> float:
        found = {}
        for entry in os.listdir("/proc"):
            if entry.isdigit() and (row := _stat(int(entry))):
                found[int(entry)] = row
        return sum(row[2] for pid, row in found.items() if self._is_ours(pid, found)) / TICKS

    def _is_ours(self, pid: int, found: dict[int, tuple[int, int, int]]) -> bool:
        if pid not in found:
            return False
        parent, born, _ = found[pid]
        if (pid, born) not in self.ours:
            known = pid == os.getpid() or self._is_ours(parent, found) or MARK in _environ(pid)
            self.ours[pid, born] = known
        return self.ours[pid, born]


def _stat(pid: int) -> tuple[int, int, int] | None:
    """The parent, the start time and the used ticks of a process, including those of dead children."""
    try:
        fields = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()
    except OSError:
        return None
    return int(fields[1]), int(fields[19]), sum(map(int, fields[11:15]))


def _environ(pid: int) -> list[str]:
    try:
        return Path(f"/proc/{pid}/environ").read_bytes().decode(errors="replace").split("\0")
    except OSError:
        return []


class Plugin:
    def __init__(self, path: Path) -> None:
        self.path, self.counter, self.last = path, Counter(), 0.0

    def _since(self) -> float:
        before, self.last = self.last, self.counter.seconds()
        return round(max(self.last - before, 0.0), 3)  # fewer than before if a process died and no parent waited for it

    def _write(self, name: str, **seconds: float) -> None:
        with self.path.open("a") as file:
            file.write(json.dumps({"test": name} | seconds) + "\n")

    def pytest_collection_finish(self) -> None:
        self._write("collection", setup=self._since())

    @pytest.hookimpl(wrapper=True, tryfirst=True)
    def pytest_runtest_protocol(self, item: pytest.Item) -> Iterator[None]:
        self.parts: dict[str, float] = {}
        result = yield
        self._write(item.nodeid, **self.parts)
        return result

    def pytest_runtest_logreport(self, report: pytest.TestReport) -> None:
        self.parts[report.when] = self._since()

    @pytest.hookimpl(wrapper=True)
    def pytest_sessionfinish(self) -> Iterator[None]:
        result = yield
        self._write("end", teardown=self._since())
        return result
