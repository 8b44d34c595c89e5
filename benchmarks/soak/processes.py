"""What each process of an installation is, holds and has used: its part of the memory that it shares counts for it as its share."""

import os
import re
from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path

MB = 1_048_576
GROWN_MB, GROWN_SHARE = 16.0, 0.10  # less is what allocators and caches do in an hour

# The first that fits the command line, or that of the parent; what fits none is listed by its program
NAMES = (
    (r"manage\.py up(?: |$)", "supervisor"),
    (r"manage\.py (\w+)", "manage.py {}"),
    (r"\bpostgres -D", "Postgres"),
    (r"^postgres: \w+ touchstone", "Postgres, a connection"),
    (r"^postgres: ([a-z ]+)", "Postgres, {}"),
    (r"valkey-server", "Redis"),
    (r"-m celery .* worker", "worker"),
    (r"-m celery .* beat", "beat"),
    (r"resource_tracker", "resource tracker"),
    (r"-m uvicorn", "web, master"),
    (r"gcs_server", "Ray, gcs_server"),
    (r"raylet/raylet", "Ray, raylet"),
    (r"ray::(\S+)", "Ray, {}"),
    (r"(dashboard|log_monitor|runtime_env|monitor)\w*(?:/\w+)*\.py", "Ray, {}"),
    (r"dashboard[./]agent|dashboard_agent", "Ray, dashboard agent"),
    (r"-m trainer (\w[\w-]*)", "trainer {}"),
    (r"default_worker\.py", "Ray, a worker"),
)


@dataclass(frozen=True)
class Process:
    """`own` bytes are its own and its part of shared memory; `cpu_s` counts its ended children."""

    pid: int
    name: str
    own: int
    cpu_s: float


def name_of(command: str, parent: str) -> str:
    """What the process is for, by its command line and its parent's."""
    if "multiprocessing" in command and "spawn_main" in command:
        return f"{_named(parent).partition(',')[0]}, a process"
    return _named(command)


def _named(command: str) -> str:
    for pattern, name in NAMES:
        if found := re.search(pattern, command):
            return name.format(*found.groups()).strip()
    return Path(command.partition(" ")[0]).name or "?"


def below(root: int) -> list[Process]:
    """The process and all that it has started, and what these have, now; without what ends while it is looked at."""
    parents: dict[int, int] = {}
    stats: dict[int, list[str]] = {}
    for folder in Path("/proc").glob("[0-9]*"):
        try:
            fields = (folder / "stat").read_text().rpartition(")")[2].split()
        except OSError:
            continue
        parents[int(folder.name)], stats[int(folder.name)] = int(fields[1]), fields
    found = []
    for pid in [pid for pid in parents if root in _ancestry(pid, parents)]:
        try:
            own = _own(pid)
            command, above = _command(pid), _command(parents[pid])
        except OSError:
            continue
        if command:
            seconds = sum(map(int, stats[pid][11:15])) / os.sysconf("SC_CLK_TCK")
            found.append(Process(pid, name_of(command, above), own, seconds))
    return found


def _ancestry(pid: int, parents: dict[int, int]) -> Iterable[int]:
    while pid in parents:
        yield pid
        pid = parents[pid]


def _command(pid: int) -> str:
    return (Path("/proc") / str(pid) / "cmdline").read_bytes().replace(b"\0", b" ").decode(errors="replace").strip()


def _own(pid: int) -> int:
    kept = 0
    for line in (Path("/proc") / str(pid) / "smaps_rollup").read_text().splitlines():
        name, _, value = line.partition(":")
        if name in ("Pss_Anon", "Pss_Shmem"):
            kept += int(value.split()[0]) * 1024
    return kept


@dataclass(frozen=True)
class Row:
    """Of one process that was there at both marks, or of all of a name that were not: `first` and `last` in MB."""

    name: str
    first: float
    last: float
    lasting: bool

    @property
    def grows(self) -> bool:
        grown = self.last - self.first
        return self.lasting and grown > GROWN_MB and grown > GROWN_SHARE * self.first


def rows(first: Iterable[Process], last: Iterable[Process]) -> list[Row]:
    """A row for each process that was there at both marks; the others are added up by name."""
    before, after = {each.pid: each for each in first}, {each.pid: each for each in last}
    both = {pid for pid in before.keys() & after.keys() if before[pid].name == after[pid].name}
    found = [Row(after[pid].name, before[pid].own / MB, after[pid].own / MB, lasting=True) for pid in both]
    passing: dict[str, list[float]] = {}
    for side, processes in ((0, before), (1, after)):
        for each in processes.values():
            if each.pid not in both:
                passing.setdefault(f"{each.name} (others each time)", [0.0, 0.0])[side] += each.own / MB
    found += [Row(name, held[0], held[1], lasting=False) for name, held in passing.items()]
    return sorted(found, key=lambda row: (row.name, -row.last))


def table(found: Iterable[Row], marks: tuple[str, str]) -> str:
    lines = [f"{'MB of its own':44}{marks[0]:>10}{marks[1]:>10}{'grown':>8}"]
    for row in found:
        grown = f"{row.last - row.first:+8.1f}" if row.lasting else f"{'':8}"
        lines.append(f"{row.name:44}{row.first:10.1f}{row.last:10.1f}{grown}{'  GROWS' if row.grows else ''}")
    return "\n".join(lines)
