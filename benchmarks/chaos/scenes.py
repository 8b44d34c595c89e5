"""The other faults, each alone: what it needs of the machine, how the installation starts for it, and the disturbance."""

import os
import signal
import subprocess
import tempfile
import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

import redis

from tests.stack import Stack

from .clock import ShiftedClock, compiler
from .killing import kinds
from .proxy import Proxy
from .runs import Runs
from .slow_disk import SlowDisk, available
from .storm import Disturb, Storm, kill_at_random

DISK_BYTES = 2_000_000_000
DELAY_S = 0.5
BACK_HOURS = 2
AS_NICE = {"RAY_worker_niceness": "0"}
"""Ray starts its workers 15 nicer than their learner: beside other work on the machine they got no time, and no run was ever far
enough to be hit.
"""


@dataclass(frozen=True)
class Scene:
    """A scene. `start` yields the installation and its disturbance. `needs` says why the scene cannot be played here; empty if it can."""

    about: str
    start: "Callable[[], SceneStart]"
    needs: Callable[[], str] = lambda: ""


class SceneStart:
    """An installation and its disturbance."""

    def __init__(self, stack: Stack, disturb: Disturb, close: Callable[[], None] = lambda: None) -> None:
        self.stack, self.disturb, self.close = stack, disturb, close


def _stack(env: Mapping[str, str] | None = None, **given: Any) -> Stack:
    return Stack("--no-demo", env={**(env or {}), **AS_NICE}, **given)


def _plain(disturb: Disturb) -> Callable[[], SceneStart]:
    return lambda: SceneStart(_stack(), disturb)


def _now_and_then(storm: Storm, every_s: float) -> Iterator[int]:
    deadline, number = time.monotonic() + storm.plan.seconds, 0
    while time.monotonic() < deadline:
        time.sleep(every_s)
        number += 1
        yield number


def empty_redis(storm: Storm, runs: Runs) -> None:
    socket = storm.site.stack.var / "run" / "redis.sock"
    for number in _now_and_then(storm, 5.0):
        with redis.Redis(unix_socket_path=str(socket)) as server:
            keys = server.dbsize()
            server.flushall()
        storm.say(f"Redis emptied of {keys} keys, the {number}. time")


def restart_postgres(storm: Storm, runs: Runs) -> None:
    """A fast shutdown: every open transaction is aborted."""
    for number in _now_and_then(storm, 10.0):
        open_ones = len(kinds(storm.site.stack).get("Postgres backend", ()))
        for pid in kinds(storm.site.stack).get("Postgres", ()):
            os.kill(pid, signal.SIGINT)
        storm.say(f"Postgres told to stop with {open_ones} connections, the {number}. time")


def _network() -> SceneStart:
    proxy = Proxy()
    stack = _stack({"INTERNAL_URL": f"http://127.0.0.1:{proxy.port}"})
    stack.wait_until_up()
    parts = urlsplit(stack.url)
    proxy.to = (parts.hostname or "127.0.0.1", parts.port or 80)

    def cut(storm: Storm, runs: Runs) -> None:
        _until_running(runs)
        proxy.cut()
        storm.say(f"no run reaches the server for {storm.plan.seconds:.0f} s")
        try:
            time.sleep(storm.plan.seconds)
        finally:
            proxy.mend()

    return SceneStart(stack, cut, proxy.close)


def _until_running(runs: Runs) -> None:
    """Wait until both disturbed runs have made a step, or five minutes have passed; returns at once if nothing is trained."""
    deadline = time.monotonic() + 300
    while runs.steps and time.monotonic() < deadline and not runs.both_under_way:
        time.sleep(0.5)


def _small_disk() -> SceneStart:
    folder = Path(tempfile.mkdtemp(prefix="ts-disk-"))
    subprocess.run(["mount", "-t", "tmpfs", "-o", f"size={DISK_BYTES},mode=755", "tmpfs", str(folder)], check=True)

    def close() -> None:
        subprocess.run(["umount", "-l", str(folder)], check=True)
        folder.rmdir()

    def fill(storm: Storm, runs: Runs) -> None:
        _until_running(runs)
        for number in _now_and_then(storm, 5.0):
            with _filled(folder / "filler"):
                storm.say(f"the disk is full, the {number}. time")
                time.sleep(20.0)
            storm.say("there is room again")

    return SceneStart(_stack(var=folder), fill, close)


@contextmanager
def _filled(path: Path) -> Iterator[None]:
    """Leaves no byte free on the disk of `path` while the block runs."""
    file = os.open(path, os.O_WRONLY | os.O_CREAT)
    try:
        for size in (1 << 20, 1 << 12, 1):
            try:
                while True:
                    os.write(file, bytes(size))
            except OSError:
                continue
        yield
    finally:
        os.close(file)
        path.unlink()


def _slow_disk() -> SceneStart:
    disk = SlowDisk(0.0)
    stack = _stack(enter=disk.enter)
    disk.start()

    def slow(storm: Storm, runs: Runs) -> None:
        before, disk.delay_s = disk.held, DELAY_S
        storm.say(f"from now on each fsync takes {DELAY_S} s longer")
        try:
            time.sleep(storm.plan.seconds)
        finally:
            disk.delay_s = 0.0
        storm.say(f"{disk.held - before} were held up")

    return SceneStart(stack, slow, disk.close)


def _clock() -> SceneStart:
    clock = ShiftedClock()
    stack = _stack(clock.environment)

    def back_and_forth(storm: Storm, runs: Runs) -> None:
        """Set the clock forward and back, and leave it back at the end: work that waits for a time written before then shows, because
        everything must end.
        """
        _until_running(runs)
        for hours in (0, -BACK_HOURS, 0, -BACK_HOURS):
            clock.set(hours)
            storm.say(f"the clock is {-hours} hours back" if hours else "the clock is right")
            time.sleep(storm.plan.seconds / 4)

    return SceneStart(stack, back_and_forth, clock.close)


SCENES = {
    "kills": Scene("SIGKILL at random", _plain(kill_at_random)),
    "redis": Scene("Redis emptied every five seconds", _plain(empty_redis)),
    "postgres": Scene("Postgres stopped every ten seconds, with transactions open", _plain(restart_postgres)),
    "network": Scene("no run reaches the web server", _network),
    "full-disk": Scene(
        "a disk without a byte left, for 20 of every 25 s",
        _small_disk,
        lambda: "" if os.geteuid() == 0 else "only root can mount a small disk",
    ),
    "clock": Scene(
        "the wall clock two hours back, forth, and back again",
        _clock,
        lambda: "" if compiler() else "there is no C compiler (cc)",
    ),
    "slow-disk": Scene(
        "every fsync of every process takes 500 ms longer",
        _slow_disk,
        lambda: "" if available() else "the kernel's number of fsync is not known for this machine",
    ),
}
