"""The machine that a measurement was taken on, in one line."""

import os
import platform
from pathlib import Path


def describe() -> str:
    """Processor, cores this process may use, memory, present load, versions of kernel and Python."""
    memory = os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES") / 2**30
    cores = len(os.sched_getaffinity(0))
    parts = [_processor(), f"{cores} cores", f"{memory:.0f} GiB", f"load {os.getloadavg()[0]:.1f}"]
    return ", ".join([*parts, f"Linux {platform.release()}", f"Python {platform.python_version()}"])


def _processor() -> str:
    lines = Path("/proc/cpuinfo").read_text().splitlines()
    names = [line.partition(":")[2].strip() for line in lines if line.startswith("model name")]
    return names[0] if names else platform.machine()


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
