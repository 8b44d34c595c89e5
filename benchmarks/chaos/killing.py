"""Who is there to be killed, by kind, and the hand that does it."""

import math
import os
import random
import signal
import time
from collections import Counter
from collections.abc import Callable, Mapping
from contextlib import suppress
from dataclasses import dataclass

import psutil

from tests.stack import Stack
from webapp.localstack.supervisor import HEALTHY_AFTER_S

from .ledger import Ledger


@dataclass(frozen=True)
class Seen:
    pid: int
    name: str
    line: str
    parent: int


Found = Mapping[str, list[int]]
ENDS_RUNS = ("Ray's head", "raylet", "learner")
ACTORS = ("rollout actor", "reward worker")
SERVICES = {
    "web server": "web",
    "web process": "web",
    "worker": "celery",
    "beat": "beat",
    "Redis": "redis",
    "Postgres": "postgres",
    "Postgres backend": "postgres",
    "Ray's head": "ray",
    "raylet": "ray",
}
BEGINNERS = 0.1
"""The share of draws that also hit what only begins. Were it one, a service that takes longer to start than it is until the next
kill would never be up, and nothing would be at work that could be lost."""
AT_WORK_S = HEALTHY_AFTER_S + 2
"""So long a service has to be up before the other draws hit it. Sooner, its supervisor takes it for one that cannot run and waits longer
and longer before it starts it again."""


def family(stack: Stack) -> list[Seen]:
    """Every process of the installation, orphans included: its supervisor adopts them."""
    found = []
    for process in psutil.Process(stack.process.pid).children(recursive=True):
        with suppress(psutil.Error):
            if process.status() != psutil.STATUS_ZOMBIE:
                found.append(Seen(process.pid, process.name(), " ".join(process.cmdline()), process.ppid()))
    return found


def kinds(stack: Stack, judge: Callable[[], int | None] = lambda: None) -> Found:
    """The living, by kind."""
    top, everybody = stack.process.pid, family(stack)
    found: dict[str, list[int]] = {}
    for each in everybody:
        if kind := _kind(each, top):
            found.setdefault(kind, []).append(each.pid)
    servers, postmasters = found.get("web server", []), found.get("Postgres", [])
    for each in everybody:
        if each.parent in servers and "multiprocessing" in each.line and "resource_tracker" not in each.line:
            found.setdefault("web process", []).append(each.pid)
        if each.parent in postmasters and "touchstone" in each.line.removeprefix("postgres: ")[:20]:
            found.setdefault("Postgres backend", []).append(each.pid)
    if pid := judge():
        found["judge"] = [pid]
    return found


def _kind(each: Seen, top: int) -> str:
    line = each.line
    if each.parent == top:
        for kind, needle in {"web server": "uvicorn", "worker": " worker ", "beat": " beat "}.items():
            if needle in line and (kind == "web server" or "celery" in line):
                return kind
        if each.name == "postgres":
            return "Postgres"
        if each.name.startswith("valkey"):
            return "Redis"
    if each.name in ("gcs_server", "raylet"):
        return "Ray's head" if each.name == "gcs_server" else "raylet"
    if line.endswith("-m trainer job"):
        return "learner" if "sh -c" not in line else ""
    for kind, actor in {"rollout actor": "ray::RolloutActor", "reward worker": "ray::RewardActor"}.items():
        if line.startswith(actor):
            return kind
    return ""


class Up:
    """Since when each service is up, by what the supervisor has told of it last."""

    def __init__(self) -> None:
        self._since: dict[str, tuple[int, float]] = {}

    def beginning(self, output: str, now: float) -> list[str]:
        """The kinds whose service is not up, or not for long."""
        lines = [line.split() for line in output.splitlines() if len(line.split()) > 1]
        told = {line[0]: (number, line[1]) for number, line in enumerate(lines)}
        return [
            kind for kind, service in SERVICES.items() if not self._at_work(service, *told.get(service, (0, "")), now)
        ]

    def _at_work(self, service: str, number: int, state: str, now: float) -> bool:
        if service not in self._since:  # the first look: whoever is up was so before
            self._since[service] = (number, -math.inf)
        elif self._since[service][0] != number:
            self._since[service] = (number, now)
        return state == "running" and now - self._since[service][1] >= AT_WORK_S


class Killer:
    """Draws a kind among those that live, then one of its processes."""

    def __init__(self, stack: Stack, ledger: Ledger, seed: int, judge: Callable[[], int | None]) -> None:
        self.stack, self.ledger, self.judge = stack, ledger, judge
        self.draw = random.Random(seed)  # noqa: S311
        self.counts: Counter[str] = Counter()
        self._up = Up()

    def strike(self, sparing: tuple[str, ...] = ()) -> str:
        """The kind of what was killed; empty if nothing lives that may be, or the judge alone."""
        if self.draw.random() >= BEGINNERS:
            sparing = (*sparing, *self._up.beginning(self.stack.output.read_text(), time.monotonic()))
        living = {kind: pids for kind, pids in kinds(self.stack, self.judge).items() if kind not in sparing}
        if not living.keys() - {"judge"}:
            return ""
        # the rarest so far first, so that a short run meets all kinds; by chance among those
        fewest = min(self.counts[kind] for kind in living)
        kind = self.draw.choice(sorted(each for each in living if self.counts[each] <= fewest + 1))
        return kind if self.kill(kind, self.draw.choice(sorted(living[kind]))) else ""

    def kill(self, kind: str, pid: int) -> bool:
        try:
            os.kill(pid, signal.SIGKILL)
        except ProcessLookupError:
            return False
        self.counts[kind] += 1
        self.ledger.write("killed", process=kind, pid=pid)
        return True
