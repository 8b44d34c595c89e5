"""The machine that a measurement was taken on, in one line; processor time of a tree of processes."""

import os
from pathlib import Path

from trainer.machine import describe

__all__ = ["cpu_seconds", "describe"]


def cpu_seconds(pid: int) -> float:
    """Processor time that the process and those it started have used, the ended ones included."""
    children: dict[int, list[int]] = {}
    used: dict[int, float] = {}
    for folder in Path("/proc").iterdir():
        if not folder.name.isdigit():
            continue
        try:
            fields = (folder / "stat").read_text().rpartition(")")[2].split()
        except OSError:  # ended meanwhile
            continue
        children.setdefault(int(fields[1]), []).append(int(folder.name))
        used[int(folder.name)] = sum(map(int, fields[11:15])) / os.sysconf("SC_CLK_TCK")
    waiting, total = [pid], 0.0
    while waiting:
        process = waiting.pop()
        total += used.get(process, 0.0)
        waiting += children.get(process, [])
    return total
