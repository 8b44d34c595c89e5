"""`python -m trainer ...` in processes forked from one that has loaded torch and transformers, because loading these takes four processor
seconds; and programs that use the product, from one that has loaded Django and its apps, which takes two. They are for tests that need such
a process and do not test its start.

`command()` is a command for a setting or `subprocess`, to which the arguments of `python -m trainer` are added. Its process is a small one.
It passes its streams, its environment and its folder on to the fork server, and ends as the forked process does. It passes SIGTERM on. It
leaves SIGINT to the forked process, which Ctrl-C reaches as well. If it is killed, the forked process is killed a moment later: who reads
its output to the end knows that it is gone. The settings of Django are those of the environment in which the first such process was started.
"""

import atexit
import json
import os
import runpy
import select
import signal
import socket
import subprocess
import sys
import tempfile
from contextlib import suppress
from importlib import import_module
from pathlib import Path
from typing import NoReturn

ROOT = Path(__file__).resolve().parent.parent
CLIENT = """
import json, os, signal, socket, struct, sys
to = socket.socket(socket.AF_UNIX)
to.connect(sys.argv[1])
said = json.dumps([sys.argv[2:], dict(os.environ), os.getcwd()]).encode()
socket.send_fds(to, [struct.pack(">q", len(said))], [0, 1, 2])
to.sendall(said)
signal.signal(signal.SIGTERM, lambda number, _: to.send(bytes([number])))
signal.signal(signal.SIGINT, signal.SIG_IGN)
answer = to.recv(8)
code = struct.unpack(">q", answer)[0] if len(answer) == 8 else 1
if code < 0:
    signal.signal(-code, signal.SIG_DFL) if -code != signal.SIGKILL else None
    os.kill(os.getpid(), -code)
os._exit(code)
"""
TRAINER = ("tests.trainer.preloaded", "tests.webapp.weights.preloaded", "trainer.serving.command")
PRODUCT = ("tests.webapp.preloaded",)
_places: dict[tuple[str, ...], Path] = {}


def command(module: str = "trainer", loaded: tuple[str, ...] = TRAINER, **variables: str) -> list[str]:
    """The command that stands for `python -m module`. The first call starts the fork server, which imports `loaded`, with these variables."""
    if loaded not in _places:
        place = Path(tempfile.mkdtemp(prefix="ts-fork-"), "socket")
        server = subprocess.Popen(
            [sys.executable, "-m", __name__, str(place), *loaded],
            cwd=ROOT,
            env={**os.environ, "OMP_NUM_THREADS": "1", **variables},
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
        )
        assert server.stdin is not None and server.stdout is not None
        assert server.stdout.readline() == b"ready\n"
        atexit.register(_end, server)
        _places[loaded] = place
    return [sys.executable, "-I", "-S", "-c", CLIENT, str(_places[loaded]), module]


def _end(server: "subprocess.Popen[bytes]") -> None:
    assert server.stdin is not None
    server.stdin.close()
    server.wait()


def main(place: str, *loaded: str) -> None:
    """Forks a keeper for each client, until the input ends."""
    for name in loaded:
        import_module(name)
    os.fsync = os.fstat  # type: ignore[assignment]  # as in conftest.py

    signal.signal(signal.SIGINT, signal.SIG_IGN)
    clients = socket.socket(socket.AF_UNIX)
    clients.bind(place)
    clients.listen()
    print("ready", flush=True)
    while sys.stdin.fileno() not in select.select([clients.fileno(), sys.stdin.fileno()], [], [])[0]:
        client, _ = clients.accept()
        _bury()
        if os.fork() == 0:
            clients.close()
            _keep(client)
        client.close()
    _bury()
    Path(place).unlink()  # here, for a worker of xdist may end without its last calls
    Path(place).parent.rmdir()


def _bury() -> None:
    """Waits for the keepers that have ended, so that their processor time counts for this process."""
    with suppress(ChildProcessError):
        while os.waitpid(-1, os.WNOHANG)[0]:
            pass


def _keep(client: socket.socket) -> NoReturn:
    """Starts the process, and tells its client how the process ended. The process ends with its client."""
    said, fds, _, _ = socket.recv_fds(client, 8, 3)
    size = int.from_bytes(said, "big")
    text = b""
    while len(text) < size:
        text += client.recv(size - len(text))
    child = os.fork()
    if child == 0:
        client.close()
        arguments, environment, folder = json.loads(text)
        _run(arguments, environment, folder, fds)
    for each in fds:
        os.close(each)
    ended = os.pidfd_open(child)
    passed_on = b"any"
    while passed_on and ended not in select.select([client.fileno(), ended], [], [])[0]:
        passed_on = client.recv(1)
        os.kill(child, passed_on[0] if passed_on else signal.SIGKILL)
    code = os.waitstatus_to_exitcode(os.waitpid(child, 0)[1])
    try:
        client.sendall(code.to_bytes(8, "big", signed=True))
    finally:
        os._exit(0)


def _run(arguments: list[str], environment: dict[str, str], folder: str, fds: list[int]) -> NoReturn:
    signal.signal(signal.SIGINT, signal.SIG_DFL)
    for number, each in enumerate(fds):
        os.dup2(each, number)
        os.close(each)
    os.environ.clear()
    os.environ.update(environment)
    os.chdir(folder)
    sys.argv = list(arguments)
    sys.modules.pop(f"{arguments[0]}.__main__", None)  # loaded before, and now to be run
    code = 1
    try:
        runpy.run_module(arguments[0], run_name="__main__", alter_sys=True)
        code = 0
    except SystemExit as asked:
        if isinstance(asked.code, str):
            print(asked.code, file=sys.stderr)  # and code 1, as without this process
        else:
            code = int(asked.code or 0)
    except BaseException:
        sys.excepthook(*sys.exc_info())
    finally:
        sys.stdout.flush()
        sys.stderr.flush()
        os._exit(code)


if __name__ == "__main__":
    main(*sys.argv[1:])
