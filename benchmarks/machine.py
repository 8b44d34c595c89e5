"""The machine on which a measurement was taken, in one line; CPU time and memory of a tree of processes."""

import os
import sys
from contextlib import suppress
from pathlib import Path
from typing import NoReturn

from trainer.machine import describe

__all__ = ["AWAY", "away", "cpu_seconds", "describe", "memory", "memory_of_copies"]
AWAY = 69  # exit status of a measurement for which this machine lacks something (EX_UNAVAILABLE)


def away(needs: str) -> NoReturn:
    """End a measurement that cannot be taken here, and say what it needs."""
    print(f"not measured here: {needs}", flush=True)
    sys.exit(AWAY)


def cpu_seconds(pid: int) -> float:
    """CPU time that the process and those it started have used, with those that have ended."""
    return sum(sum(map(int, fields[11:15])) for fields in _tree(pid).values()) / os.sysconf("SC_CLK_TCK")


def memory(pid: int) -> int:
    """Bytes that the process and those it started hold now: the own memory of each, and once the files that they map,
    programs and libraries. For the files, the process with the most counts, because the others map the same ones.
    """
    held = [_held(process) for process in _tree(pid)]
    return sum(own for own, _ in held) + max((files for _, files in held), default=0)


def memory_of_copies(pid: int) -> int:
    """Like `memory`, for processes that are copies of one another: a page that several of them hold counts once. Slower."""
    return sum(_share(process) for process in _tree(pid))


def _share(pid: int) -> int:
    """Bytes of the process, of each page its share; 0 for a process that has ended."""
    with suppress(OSError):
        for line in Path(f"/proc/{pid}/smaps_rollup").read_text().splitlines():
            if line.startswith("Pss:"):
                return int(line.split()[1]) * 1024
    return 0


def _held(pid: int) -> tuple[int, int]:
    """Bytes of its own memory and of mapped files; 0 for a process that has ended."""
    found = {"RssAnon": 0, "RssShmem": 0, "RssFile": 0}
    with suppress(OSError):
        for line in Path(f"/proc/{pid}/status").read_text().splitlines():
            name, _, value = line.partition(":")
            if name in found:
                found[name] = int(value.split()[0]) * 1024
    return found["RssAnon"] + found["RssShmem"], found["RssFile"]


def _tree(pid: int) -> dict[int, list[str]]:
    """The process and those it started that still run: the fields of /proc/PID/stat behind the name."""
    children: dict[int, list[int]] = {}
    found: dict[int, list[str]] = {}
    for folder in Path("/proc").iterdir():
        if not folder.name.isdigit():
            continue
        try:
            fields = (folder / "stat").read_text().rpartition(")")[2].split()
        except OSError:  # ended meanwhile
            continue
        children.setdefault(int(fields[1]), []).append(int(folder.name))
        found[int(folder.name)] = fields
    waiting, tree = [pid], {}
    while waiting:
        process = waiting.pop()
        if process in found:
            tree[process] = found[process]
        waiting += children.get(process, [])
    return tree
