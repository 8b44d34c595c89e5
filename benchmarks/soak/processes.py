"""The name of each process of an installation, what it holds and what it has used.

Two numbers say what it holds. `anonymous` is memory that belongs to no file and is not shared on purpose, as `RssAnon` of the kernel. It
grows if the process takes more. It does not grow if the process touches, for the first time, a page that others have touched before (the
shared buffers of Postgres), nor if a page that it has from its parent is copied for it. `share` adds up: each page, shared ones included,
counts once over all processes. So sums use `share`.
"""

import os
import re
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from pathlib import Path

MB = 1_048_576
GROWN_MB, GROWN_SHARE = 16.0, 0.10  # allocators and caches take less in an hour

# The first that fits the command line, or that of the parent; a process that fits none is listed by its program
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
class SoakedProcess:
    """Bytes: `share` is the process's own memory and its part of what it shares, `shared` is memory shared on purpose; see above.
    `cpu_s` counts its ended children.
    """

    pid: int
    name: str
    anonymous: int
    share: int
    shared: int
    cpu_s: float


def name_of(command: str, parent: str) -> str:
    """The purpose of the process, by its command line and its parent's."""
    if "multiprocessing" in command and "spawn_main" in command:
        return f"{_named(parent).partition(',')[0]}, a process"
    return _named(command)


def _named(command: str) -> str:
    for pattern, name in NAMES:
        if found := re.search(pattern, command):
            return name.format(*found.groups()).strip()
    return Path(command.partition(" ")[0]).name or "?"


def below(root: int) -> list[SoakedProcess]:
    """The process and everything below it that it has started, now; without processes that end meanwhile."""
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
            held = _held(pid)
            command, above = _command(pid), _command(parents[pid])
        except OSError:
            continue
        if command:
            seconds = sum(map(int, stats[pid][11:15])) / os.sysconf("SC_CLK_TCK")
            found.append(SoakedProcess(pid, name_of(command, above), *held, seconds))
    return found


def _ancestry(pid: int, parents: dict[int, int]) -> Iterable[int]:
    while pid in parents:
        yield pid
        pid = parents[pid]


def _command(pid: int) -> str:
    return (Path("/proc") / str(pid) / "cmdline").read_bytes().replace(b"\0", b" ").decode(errors="replace").strip()


def _held(pid: int) -> tuple[int, int, int]:
    """(anonymous, share, shared) of `SoakedProcess`."""
    bytes_of = dict.fromkeys(("Anonymous", "Pss_Anon", "Pss_Shmem"), 0)
    for line in (Path("/proc") / str(pid) / "smaps_rollup").read_text().splitlines():
        name, _, value = line.partition(":")
        if name in bytes_of:
            bytes_of[name] = int(value.split()[0]) * 1024
    return bytes_of["Anonymous"], bytes_of["Pss_Anon"] + bytes_of["Pss_Shmem"], bytes_of["Pss_Shmem"]


@dataclass(frozen=True)
class MemoryRow:
    """A process that was there at every mark, or all processes of a name that were not: MB at each mark, in order."""

    name: str
    anonymous: tuple[float, ...]
    share: tuple[float, ...]
    lasting: bool

    @property
    def first(self) -> float:
        return self.anonymous[0]

    @property
    def last(self) -> float:
        return self.anonymous[-1]

    @property
    def grows(self) -> bool:
        grown = self.last - self.first
        return self.lasting and grown > GROWN_MB and grown > GROWN_SHARE * self.first


def rows(marks: Sequence[Iterable[SoakedProcess]]) -> list[MemoryRow]:
    """A row for each process that was there at every mark; the others are added up by name."""
    seen = [{(each.pid, each.name): each for each in processes} for processes in marks]
    lasting = seen[0].keys() & set.intersection(*(set(each) for each in seen))
    found = [_row(key[1], [[each[key]] for each in seen], lasting=True) for key in lasting]
    for name in {name for each in seen for pid, name in each.keys() - lasting}:
        passing = [[each[key] for key in each.keys() - lasting if key[1] == name] for each in seen]
        found.append(_row(f"{name} (others each time)", passing, lasting=False))
    return sorted(found, key=lambda row: (row.name, -row.last))


def _row(name: str, held: Sequence[Sequence[SoakedProcess]], lasting: bool) -> MemoryRow:
    anonymous, share = (
        tuple(sum(getattr(each, kind) for each in at) / MB for at in held) for kind in ("anonymous", "share")
    )
    return MemoryRow(name, anonymous, share, lasting)


def table(found: Iterable[MemoryRow], marks: Sequence[str]) -> str:
    """The table of the marks: the memory that the process alone holds, and at the first and the last mark its share of all memory."""
    heads = "".join(f"{mark:>10}" for mark in (*marks, "grown"))
    lines = [f"{'MB anonymous':44}{heads}{'share, from':>14}{'to':>8}"]
    for row in found:
        held = "".join(f"{value:10.1f}" for value in row.anonymous)
        grown = f"{row.last - row.first:+10.1f}" if row.lasting else f"{'':10}"
        share = f"{row.share[0]:14.1f}{row.share[-1]:8.1f}"
        lines.append(f"{row.name:44}{held}{grown}{share}{'  GROWS' if row.grows else ''}")
    return "\n".join(lines)
