"""Processes that read files for imports (`webapp.datasets.ingest.processes`), forked from one that has loaded their modules.

Starting Python and loading the modules takes half a processor second, and hundreds of tests import a packed file of a few rows. The code in
such a process, and its protocol, are those of the product. tests/webapp/datasets/ingest/test_processes.py starts the processes like the
product does.
"""

import os
import select
import signal
import socket
import subprocess
import sys
from contextlib import suppress
from struct import Struct
from typing import Any

from webapp.datasets.ingest import processes

_word = Struct(">q")
_fork_server: list[socket.socket] = []  # our end of the socket, after the fork server has been started
start_as_the_product = processes._process


class Reading:
    """The parts of a `subprocess.Popen` that `processes` and its tests use."""

    def __init__(self, status: int, to: int, source: int) -> None:
        self._status = status
        self.pid: int = _word.unpack(os.read(status, _word.size))[0]
        self.stdin, self.stdout = os.fdopen(to, "wb", 0), os.fdopen(source, "rb", 0)
        self.returncode: int | None = None

    def wait(self, timeout: float | None = None) -> int:
        if self.returncode is None:
            if not select.select([self._status], [], [], timeout)[0]:
                raise subprocess.TimeoutExpired("reader", timeout or 0)
            self.returncode = os.waitstatus_to_exitcode(_word.unpack(os.read(self._status, _word.size))[0])
            os.close(self._status)
        return self.returncode

    def poll(self) -> int | None:
        try:
            return self.wait(0)
        except subprocess.TimeoutExpired:
            return None

    def send_signal(self, number: int) -> None:
        if self.poll() is None:
            with suppress(ProcessLookupError):  # it has ended since, and the word of its end is on its way
                os.kill(self.pid, number)

    def kill(self) -> None:
        self.send_signal(signal.SIGKILL)

    def __enter__(self) -> "Reading":
        return self

    def __exit__(self, *_: Any) -> None:
        self.stdout.close()
        self.stdin.close()
        self.wait()


def start() -> Reading:
    """Replaces `processes._process`: starts a reader through the fork server."""
    (their_in, to), (source, their_out), (status, their_status) = os.pipe(), os.pipe(), os.pipe()
    theirs_all = [their_in, their_out, their_status]
    try:
        socket.send_fds(_at_hand(), [b"."], theirs_all)
    except BrokenPipeError:  # the fork server has ended, for any reason
        _fork_server.clear()
        socket.send_fds(_at_hand(), [b"."], theirs_all)
    for each in theirs_all:
        os.close(each)
    return Reading(status, to, source)


def _at_hand() -> socket.socket:
    """Our end of the fork server's socket. The fork server is started if there is none."""
    from webapp.core.background.children import environment  # imported here, because a reader loads no Django

    if not _fork_server:
        ours, theirs = socket.socketpair()
        command = [sys.executable, "-c", f"from {__name__} import main; main()", str(theirs.fileno())]
        with theirs:
            env = {**environment(), **processes.KEEPING, "DJANGO_SETTINGS_MODULE": "webapp.settings"}
            subprocess.Popen(command, cwd=processes.ROOT, env=env, stdin=subprocess.DEVNULL, pass_fds=[theirs.fileno()])
        _fork_server.append(ours)
    return _fork_server[0]


def main() -> None:
    """The fork server. It forks a reader for each three ends of pipes that it receives, until the other end of its socket is closed."""
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    signal.signal(signal.SIGCHLD, signal.SIG_IGN)  # nobody reads the exit status of a keeper
    control = socket.socket(fileno=int(sys.argv[1]))
    while True:
        said, fds, _, _ = socket.recv_fds(control, 1, 3)
        if not said:
            return
        if os.fork() == 0:
            control.close()
            _keep(*fds)
        for each in fds:
            os.close(each)


def _keep(source: int, to: int, status: int) -> None:
    """Starts the reader, and reports its process id and how it ended."""
    signal.signal(signal.SIGCHLD, signal.SIG_DFL)
    reader = os.fork()
    if reader == 0:
        os.close(status)
        os.dup2(source, 0)
        os.dup2(to, 1)
        os.close(source)
        os.close(to)
        code = 1
        try:
            processes.main()
            code = 0
        finally:
            os._exit(code)
    os.close(source)
    os.close(to)
    os.write(status, _word.pack(reader))
    os.write(status, _word.pack(os.waitpid(reader, 0)[1]))
    os._exit(0)
