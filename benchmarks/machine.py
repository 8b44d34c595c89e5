"""The machine that a measurement was taken on, in one line; processor time and memory of a tree of processes."""

import os
from collections.abc import Callable
from pathlib import Path

from trainer.machine import describe

__all__ = ["cpu_seconds", "describe", "memory"]


def cpu_seconds(pid: int) -> float:
    """Processor time that the process and those it started have used, the ended ones included."""
    return _sum(pid, lambda fields: sum(map(int, fields[11:15]))) / os.sysconf("SC_CLK_TCK")


def memory(pid: int) -> int:
    """Bytes that the process and those it started hold now; a page that several share counts for each."""
    return _sum(pid, lambda fields: int(fields[21])) * os.sysconf("SC_PAGE_SIZE")


def _sum(pid: int, what: Callable[[list[str]], int]) -> int:
    """Over the process and those it started that still run, of the fields of /proc/PID/stat behind the name."""
    children: dict[int, list[int]] = {}
    found: dict[int, int] = {}
    for folder in Path("/proc").iterdir():
        if not folder.name.isdigit():
            continue
        try:
            fields = (folder / "stat").read_text().rpartition(")")[2].split()
        except OSError:  # ended meanwhile
            continue
        children.setdefault(int(fields[1]), []).append(int(folder.name))
        found[int(folder.name)] = what(fields)
    waiting, total = [pid], 0
    while waiting:
        process = waiting.pop()
        total += found.get(process, 0)
        waiting += children.get(process, [])
    return total
