"""Processes input from outside in a separate process with limits on memory and time.

A fork server holds the modules that such work needs. It forks a child for each piece of work, which takes milliseconds; killing a child
affects nothing else. Question and answer are JSON: a child that a file has taken over can give a wrong answer, and nothing more.
"""

import importlib
import json
import os
import resource
import signal
import socket
import subprocess
import sys
import traceback
from dataclasses import dataclass, field
from pathlib import Path
from struct import Struct
from threading import BoundedSemaphore, Lock
from time import monotonic
from typing import Any

from ..problems import Invalid, Problem

ROOT = Path(__file__).resolve().parents[3]
PRELOADED = ("pyarrow.parquet", "webapp.datasets.ingest.inspection", "webapp.annotation.work.rubric_trial")
AT_ONCE = 2  # children of one process, where nobody says otherwise: who comes later waits
WAIT_S = 30.0  # for a free place
LONGEST_ANSWER = 64_000_000  # bytes
# of threads and memory pools: address space that is reserved and never used would count against the limit
FRUGAL = {"MALLOC_ARENA_MAX": "1", "ARROW_DEFAULT_MEMORY_POOL": "system", "OPENBLAS_NUM_THREADS": "1"}
_length = Struct(">Q")


@dataclass(frozen=True)
class ProcessLimits:
    """Limits of one piece of work: bytes beyond those of an idle child, and seconds of wall-clock time. `at_once`: how many pieces under
    the same limits run at the same time."""

    memory: int
    seconds: float
    at_once: BoundedSemaphore = field(default_factory=lambda: BoundedSemaphore(AT_ONCE), compare=False)


class Exceeded(Exception):
    """The work exceeded its limits, or ended its process; the message is a clause about it."""


class _Died(Exception):
    """The other end is closed."""


class _ForkServer:
    """Starts the fork server when it is first needed, and again if it is gone."""

    def __init__(self) -> None:
        self._lock = Lock()
        self._process: subprocess.Popen[bytes] | None = None
        self._control: socket.socket | None = None
        self._owner = 0

    def child(self) -> socket.socket:
        """Our end of a connection with a new child."""
        with self._lock:
            for _ in range(2):
                control = self._started()
                ours, theirs = socket.socketpair()
                with theirs:
                    try:
                        socket.send_fds(control, [b"."], [theirs.fileno()])
                        return ours
                    except OSError:  # it died since it was looked at
                        ours.close()
                        self._process = None
        raise RuntimeError("the process that starts confined children does not stay")

    def _started(self) -> socket.socket:
        alive = self._process is not None and self._process.poll() is None and self._owner == os.getpid()
        if alive and self._control is not None:
            return self._control
        from .children import environment  # here: the fork server loads no Django

        self._control, theirs = socket.socketpair()
        command = [sys.executable, "-c", f"from {__name__} import main; main()", str(theirs.fileno()), *PRELOADED]
        with theirs:
            env = {**environment(), **FRUGAL}
            self._process = subprocess.Popen(
                command, cwd=ROOT, env=env, stdin=subprocess.DEVNULL, pass_fds=[theirs.fileno()]
            )
        self._owner = os.getpid()
        return self._control


_fork_server = _ForkServer()


def call(function: str, limits: ProcessLimits, /, **given: Any) -> Any:
    """The result of our `module:function` for these arguments, all of it JSON.

    Raises Exceeded; Invalid if the function does; Problem 503 if no child becomes free; RuntimeError for any other error, with its
    traceback.
    """
    if not limits.at_once.acquire(timeout=WAIT_S):
        raise Problem("The server is busy. Try again in a minute.", code="busy", status=503)
    try:
        said = _asked(function, limits, given)
    finally:
        limits.at_once.release()
    if "answer" in said:
        return said["answer"]
    if "invalid" in said:
        raise Invalid(*said["invalid"])
    if "memory" in said:
        raise Exceeded(f"needs more than {limits.memory // 10**6} MB of memory")
    raise RuntimeError(f"{function} failed in its own process:\n{said['failed']}")


def _asked(function: str, limits: ProcessLimits, given: dict[str, Any]) -> dict[str, Any]:
    began = monotonic()
    with _fork_server.child() as child:
        # a new fork server takes a second to begin; the child counts for itself from when it is asked
        child.settimeout(limits.seconds + 30)
        try:
            _send(child, {"function": function, "memory": limits.memory, "seconds": limits.seconds, "given": given})
            said: dict[str, Any] = _received(child)
            return said
        except (_Died, OSError) as error:
            if monotonic() - began >= limits.seconds:
                raise Exceeded(f"takes longer than {limits.seconds:g} s") from error
            raise Exceeded("ends the process that reads it") from error


def _send(to: socket.socket, what: Any) -> None:
    data = json.dumps(what).encode()
    to.sendall(_length.pack(len(data)) + data)


def _received(source: socket.socket) -> Any:
    """Raises _Died if the other end is closed, or says more than anybody should."""
    (size,) = _length.unpack(_exactly(source, _length.size))
    if size > LONGEST_ANSWER:
        raise _Died
    return json.loads(_exactly(source, size))


def _exactly(source: socket.socket, size: int) -> bytearray:
    data = bytearray(size)
    rest = memoryview(data)
    while rest:
        count = source.recv_into(rest)
        if not count:
            raise _Died
        rest = rest[count:]
    return data


def main() -> None:
    """The fork server: a child for each connection that it is given, until nobody holds the other end."""
    signal.signal(signal.SIGINT, signal.SIG_IGN)  # from a terminal it goes to all; the parent says when to end
    signal.signal(signal.SIGCHLD, signal.SIG_IGN)  # nobody asks how a child ended: no zombies
    control = socket.socket(fileno=int(sys.argv[1]))
    for name in sys.argv[2:]:
        importlib.import_module(name)
    while True:
        said, fds, _, _ = socket.recv_fds(control, 1, 1)
        if not said:
            return
        if os.fork() == 0:
            control.close()
            _serve(socket.socket(fileno=fds[0]))
            os._exit(0)
        os.close(fds[0])


def _serve(parent: socket.socket) -> None:
    """The child: one question, one answer."""
    try:
        asked = _received(parent)
        try:
            target = _target(asked["function"])  # before it is confined: what it imports is not what it needs
            confine(asked["memory"], asked["seconds"])
            _send(parent, {"answer": target(**asked["given"])})
        except Invalid as problem:
            _send(parent, {"invalid": [problem.message, problem.fields]})
        except MemoryError:
            _send(parent, {"memory": True})
        except Exception:
            _send(parent, {"failed": traceback.format_exc(limit=-8)[-4_000:]})
    except (_Died, OSError):
        """Nobody listens any more."""


def _target(function: str) -> Any:
    module, _, name = function.partition(":")
    return getattr(importlib.import_module(module), name)


def confine(memory: int, seconds: float | None = None) -> None:
    """Limits this process to `memory` bytes of address space beyond what it has; with `seconds`, it also ends after that time."""
    more = _address_space() + memory
    resource.setrlimit(resource.RLIMIT_AS, (more, more))
    resource.setrlimit(resource.RLIMIT_CORE, (0, 0))
    if seconds is not None:
        signal.signal(signal.SIGALRM, signal.SIG_DFL)  # ends the process wherever it is, also inside a library
        signal.setitimer(signal.ITIMER_REAL, seconds)


def _address_space() -> int:
    return int(Path("/proc/self/statm").read_text().split()[0]) * resource.getpagesize()
