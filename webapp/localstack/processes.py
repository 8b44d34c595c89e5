"""Child processes that never outlive us: own process group, death signal, bounded log."""

import ctypes
import os
import signal
import subprocess
import time
from collections.abc import Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from pathlib import Path

import psutil

from webapp.core.background.children import environment

PR_SET_PDEATHSIG, PR_SET_CHILD_SUBREAPER = 1, 36
LOG_LIMIT = 5_000_000  # bytes; one older log of the same size is kept beside it
_libc = ctypes.CDLL(None, use_errno=True)


def adopt_orphans() -> None:
    """Makes this process the parent of processes that our children leave behind, instead of init, so that we can end them too."""
    _libc.prctl(PR_SET_CHILD_SUBREAPER, 1, 0, 0, 0)


@dataclass(frozen=True)
class Command:
    """A program to run. `without`: variables that it does not get. `user` is (uid, gid) to become; `stop_signal` is what the program takes
    as "end cleanly"."""

    args: Sequence[str]
    env: dict[str, str] = field(default_factory=dict)
    without: frozenset[str] = frozenset()
    cwd: Path | None = None
    user: tuple[int, int] | None = None
    stop_signal: signal.Signals = signal.SIGTERM


class Child:
    """A running command. Start it from the main thread: the kernel ties the death signal to the starting thread."""

    def __init__(self, command: Command, log: Path) -> None:
        self.command = command
        log.parent.mkdir(parents=True, exist_ok=True)
        bound_log(log)
        uid, gid = command.user or (None, None)
        with log.open("ab") as output:
            self.log_start = output.tell()
            self.process = subprocess.Popen(
                command.args,
                stdin=subprocess.DEVNULL,
                stdout=output,
                stderr=subprocess.STDOUT,
                env={**environment(command.without), **command.env},
                cwd=command.cwd,
                start_new_session=True,
                user=uid,
                group=gid,
                extra_groups=[] if uid is not None else None,
                preexec_fn=die_with_parent(command.stop_signal, os.getpid()),
            )
        self.started = time.monotonic()
        self.log = log

    @property
    def pid(self) -> int:
        return self.process.pid

    def exit_code(self) -> int | None:
        """None while it runs; negative for a signal."""
        return self.process.poll()

    def ask_to_stop(self) -> None:
        """Signals the process itself, not its group, because it knows how to end the processes that it started."""
        if self.exit_code() is None:
            self.process.send_signal(self.command.stop_signal)

    def kill_group(self) -> None:
        """Ends what is left of the group at once, the leader included."""
        with suppress(ProcessLookupError, PermissionError):  # nobody is left in the group
            os.killpg(self.pid, signal.SIGKILL)
        self.process.wait()

    def output(self, size: int = 4000) -> str:
        """The end of what it wrote since it started."""
        with self.log.open("rb") as file:
            end = file.seek(0, os.SEEK_END)
            file.seek(max(min(self.log_start, end), end - size))
            return file.read().decode(errors="replace")


def die_with_parent(death_signal: int, parent: int):  # type: ignore[no-untyped-def]
    """Runs in the child before exec, after the user changed: a change of user would clear the death signal."""

    def prepare() -> None:
        _libc.prctl(PR_SET_PDEATHSIG, int(death_signal), 0, 0, 0)
        if os.getppid() != parent:  # the parent died before the line above took effect
            os._exit(1)

    return prepare


def bound_log(log: Path) -> None:
    """Past LOG_LIMIT the log is copied aside and emptied. Writers append, so they continue at the new end.

    It is emptied first, which makes room for the copy on a full disk. If there is none even so, the older log stays as it is.
    """
    if not log.exists() or log.stat().st_size <= LOG_LIMIT:
        return
    part = log.with_suffix(".old.part")
    try:
        with log.open("rb") as source:
            source.seek(-LOG_LIMIT, os.SEEK_END)
            end = source.read()
        os.truncate(log, 0)
        part.write_bytes(end)
        part.replace(log.with_suffix(".old.log"))
    except OSError:
        with suppress(OSError):
            part.unlink(missing_ok=True)


def end_descendants(grace_s: float = 2.0) -> None:
    """Ends every process below this one, adopted orphans included, until none is left."""
    deadline = time.monotonic() + grace_s
    while left := psutil.Process().children(recursive=True):
        late = time.monotonic() > deadline
        for process in left:
            with suppress(psutil.Error):  # gone meanwhile
                process.kill() if late else process.terminate()
        psutil.wait_procs(left, timeout=0.5)
        if time.monotonic() > deadline + 10:
            return  # stuck in the kernel: nothing more can be done from here


def reap_orphans(known: set[int]) -> None:
    """Collects adopted processes that have ended; `known` are the pids whose exit someone else waits for.

    Asks the kernel for one that has ended: to look through all processes at each tick took a twentieth of a core.
    """
    with suppress(ChildProcessError):
        while ended := os.waitid(os.P_ALL, 0, os.WEXITED | os.WNOHANG | os.WNOWAIT):
            if ended.si_pid in known:
                return  # its owner collects it before the next look
            os.waitpid(ended.si_pid, 0)
