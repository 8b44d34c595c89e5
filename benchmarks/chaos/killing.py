"""Finds the processes that can be killed, by kind, and kills them."""

import math
import os
import random
import signal
import time
from collections import Counter
from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass

import psutil

from tests.stack import Stack

from .ledger import Ledger


@dataclass(frozen=True)
class SeenProcess:
    pid: int
    name: str
    line: str
    parent: int


Found = Mapping[str, list[int]]
ENDS_RUNS = ("Ray's head", "raylet", "learner")
ACTORS = ("rollout actor", "reward worker")


@dataclass(frozen=True)
class KillShare:
    """`weight` is the number of kills for each kill of a kind of weight 1, if both are there. `rest_s` is how long a kind is left alone
    after its last kill, and nine times of ten also after its service is up again.
    """

    weight: int
    rest_s: float


SHARES = {
    "web server": KillShare(2, 30),
    "web process": KillShare(4, 12),
    "worker": KillShare(2, 30),
    "beat": KillShare(3, 20),
    "Redis": KillShare(4, 15),
    "Postgres": KillShare(2, 20),
    "Postgres backend": KillShare(2, 15),
    "judge": KillShare(4, 10),
    "rollout actor": KillShare(2, 8),
    "reward worker": KillShare(2, 8),
    "learner": KillShare(3, 20),
    "raylet": KillShare(1, 60),
    "Ray's head": KillShare(1, 60),
}
"""Every service rests for longer than its supervisor needs (`HEALTHY_AFTER_S`): otherwise the supervisor takes it for a service that cannot
run, and waits longer and longer before it starts it again. A kind that is back at once is hit more often than one that everybody waits
for. A kind that is seldom there, because it ends a run or works for one, is behind its share when it is there, and so is hit then.
"""
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
LEEWAY = 0.5
"""If kinds are at most this many shares apart, chance decides."""
BEGINNERS = 0.1
"""The share of draws that may also hit a service that is only starting, once until it works. Without such draws a service whose start takes
longer than the time to the next kill would never be up, and nothing would be at work that could be lost.
"""


def family(stack: Stack) -> list[SeenProcess]:
    """Every process of the installation, orphans included: its supervisor adopts them."""
    found = []
    for process in psutil.Process(stack.process.pid).children(recursive=True):
        with suppress(psutil.Error):
            if process.status() != psutil.STATUS_ZOMBIE:
                found.append(SeenProcess(process.pid, process.name(), " ".join(process.cmdline()), process.ppid()))
    return found


def kinds(stack: Stack, judge: Callable[[], int | None] = lambda: None) -> Found:
    """The living processes, by kind."""
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


def _kind(each: SeenProcess, top: int) -> str:
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
    """The time since which each service is up, from the supervisor's last message about it."""

    def __init__(self) -> None:
        self._since: dict[str, tuple[int, float]] = {}

    def beginning(self, output: str, now: float) -> list[str]:
        """The kinds whose service is not up, or has not been up for long."""
        lines = [line.split() for line in output.splitlines() if len(line.split()) > 1]
        told = {line[0]: (number, line[1]) for number, line in enumerate(lines)}
        return [
            kind
            for kind, service in SERVICES.items()
            if self._up_for(service, *told.get(service, (0, "")), now) < SHARES[kind].rest_s
        ]

    def _up_for(self, service: str, number: int, state: str, now: float) -> float:
        """The seconds for which a service is up; 0 if it is away."""
        if service not in self._since:  # the first look: a service that is up was up before
            self._since[service] = (number, -math.inf)
        elif self._since[service][0] != number:
            self._since[service] = (number, now)
        return now - self._since[service][1] if state == "running" else -math.inf


class KillDraws:
    """Draws the kind that the next kill hits, by the seed, the kills so far and the time."""

    def __init__(self, seed: int) -> None:
        self._random = random.Random(seed)  # noqa: S311
        self.counts: Counter[str] = Counter()
        self._last: dict[str, float] = {}
        self._broken_off: set[str] = set()

    def kind(self, there: Iterable[str], now: float, beginning: Collection[str] = ()) -> str:
        """One of the kinds that are furthest behind their shares; empty if all of them rest, or only the judge is there.
        `beginning` are kinds that are not at work yet: they are hit now and then, and then not again before they work.
        """
        there, begin_too = set(there), self._random.random() < BEGINNERS
        self._broken_off &= {*beginning}
        there -= self._broken_off if begin_too else {*beginning}
        due = [kind for kind in sorted(there) if self._rested(kind, now) and not self._takes_all(kind)]
        if not there - {"judge"} or not due:
            return ""
        fewest = min(map(self._share, due))
        return self._random.choice([kind for kind in due if self._share(kind) <= fewest + LEEWAY])

    def process(self, pids: Sequence[int]) -> int:
        return self._random.choice(sorted(pids))

    def note(self, kind: str, now: float, beginning: Collection[str] = ()) -> None:
        """Note that `kind` was hit. Kinds of the same service start again with it."""
        self.counts[kind] += 1
        self._last[kind] = now
        if kind in beginning:
            self._broken_off |= {each for each in beginning if SERVICES[each] == SERVICES[kind]}

    def _share(self, kind: str) -> float:
        return self.counts[kind] / SHARES[kind].weight

    def _rested(self, kind: str, now: float) -> bool:
        return now - self._last.get(kind, -math.inf) >= SHARES[kind].rest_s

    def _takes_all(self, kind: str) -> bool:
        """Whether a kind that ends runs has had more than its share and must wait. A learner may be killed once its own run is far enough,
        Ray only once all runs are, so Ray would otherwise never get its turn.
        """
        return kind in ENDS_RUNS and self._share(kind) >= min(map(self._share, ENDS_RUNS)) + 1


class Killer:
    """Kills a process that is drawn among the living ones."""

    def __init__(self, stack: Stack, ledger: Ledger, seed: int, judge: Callable[[], int | None]) -> None:
        self.stack, self.ledger, self.judge = stack, ledger, judge
        self.draws = KillDraws(seed)
        self._up = Up()

    @property
    def counts(self) -> Counter[str]:
        return self.draws.counts

    def strike(self, spared: Collection[str], runs: Collection[int]) -> "Hit":
        """Kill one. `spared` are kinds that are left alone; `runs` are those whose learner may be hit."""
        now = time.monotonic()
        living = {kind: list(pids) for kind, pids in kinds(self.stack, self.judge).items() if kind not in spared}
        beginning = self._up.beginning(self.stack.output.read_text(), now)
        living["learner"] = [pid for pid in living.get("learner", ()) if run_of(pid) in runs]
        kind = self.draws.kind((kind for kind, pids in living.items() if pids), now, beginning)
        if not kind:
            return Hit("")
        pid = self.draws.process(living[kind])
        run = run_of(pid) if kind == "learner" else None
        return Hit(kind, run) if self.kill(kind, pid, beginning) else Hit("")

    def kill(self, kind: str, pid: int, beginning: Collection[str] = ()) -> bool:
        try:
            os.kill(pid, signal.SIGKILL)
        except ProcessLookupError:
            return False
        self.draws.note(kind, time.monotonic(), beginning)
        self.ledger.write("killed", process=kind, pid=pid)
        return True


@dataclass(frozen=True)
class Hit:
    """The last kill. `kind` is empty if no process was hit; `run` is the run whose learner it was."""

    kind: str
    run: int | None = None


def run_of(learner: int) -> int | None:
    """The run of a learner; None once the learner is gone."""
    try:
        return int(psutil.Process(learner).environ()["TOUCHSTONE_RUN_ID"])
    except (psutil.Error, KeyError):
        return None
