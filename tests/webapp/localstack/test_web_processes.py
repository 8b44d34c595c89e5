"""The web server's processes on a machine that is too busy for them."""

import os
import platform
import signal
import subprocess
import sys
import time
from pathlib import Path

import httpx
import psutil
import pytest

from tests.timeouts import SECONDS
from webapp.localstack.ports import free_ports
from webapp.localstack.processes import Child, Command
from webapp.localstack.stack import web_command, web_server

ROOT = Path(__file__).resolve().parents[3]
TINY = """
async def application(scope, receive, send):
    await send({"type": "http.response.start", "status": 200})
    await send({"type": "http.response.body", "body": b"here"})
"""
LONGER_THAN_UVICORN_WAITS_S = 7.0


def answers(port: int) -> bool:
    try:
        return httpx.get(f"http://127.0.0.1:{port}/", timeout=2, trust_env=False).text == "here"
    except httpx.HTTPError:
        return False


@pytest.mark.slow
def test_a_process_that_has_no_time_for_a_while_is_left_alone(tmp_path: Path) -> None:
    (tmp_path / "tiny.py").write_text(TINY)
    (port,) = free_ports(1)
    args = ["tiny:application" if each == "webapp.asgi:application" else each for each in web_server("127.0.0.1", port)]
    args[args.index("--workers") + 1] = "2"
    paths = os.pathsep.join([str(tmp_path), str(ROOT)])
    with subprocess.Popen([sys.executable, *args], env=os.environ | {"PYTHONPATH": paths}, cwd=tmp_path) as server:
        try:
            deadline = time.monotonic() + SECONDS
            while not answers(port):
                assert time.monotonic() < deadline and server.poll() is None
                time.sleep(0.1)
            before = psutil.Process(server.pid).children()
            for process in before:
                process.send_signal(signal.SIGSTOP)
            time.sleep(LONGER_THAN_UVICORN_WAITS_S)
            for process in before:
                process.send_signal(signal.SIGCONT)
            time.sleep(1.0)
            assert {each.pid for each in psutil.Process(server.pid).children()} == {each.pid for each in before}
        finally:
            server.terminate()


HEAPS = """
import ctypes, tempfile, threading
threads = 12
together, held = threading.Barrier(threads), []
def work():
    together.wait()
    held.append([bytes(5_000) for _ in range(200)])
    together.wait()
for each in [threading.Thread(target=work) for _ in range(threads)]:
    each.start()
for each in threading.enumerate()[1:]:
    each.join()
libc = ctypes.CDLL(None)
libc.fopen.restype = ctypes.c_void_p
with tempfile.NamedTemporaryFile("r") as told:
    file = ctypes.c_void_p(libc.fopen(told.name.encode(), b"w"))
    libc.malloc_info(0, file)
    libc.fclose(file)
    print(told.read().count("<heap nr="))
"""


def heaps(more: dict[str, str]) -> int:
    """The memory of a process with twelve threads that all hold memory at the same time."""
    bare = {name: value for name, value in os.environ.items() if not name.startswith(("MALLOC_", "GLIBC_TUNABLES"))}
    done = subprocess.run([sys.executable, "-c", HEAPS], env=bare | more, capture_output=True, text=True, check=True)
    return int(done.stdout)


@pytest.mark.skipif(platform.libc_ver()[0] != "glibc", reason="other C libraries have no heaps per thread")
def test_threads_of_a_web_process_share_two_heaps(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("MALLOC_ARENA_MAX", raising=False)
    assert heaps({}) > 2 >= heaps(web_command("127.0.0.1", 8000).env)
    image = (ROOT / "docker" / "web.Dockerfile").read_text()
    assert all(f" {name}={value}" in image for name, value in web_command("127.0.0.1", 8000).env.items())


def test_what_the_operator_says_of_heaps_stays(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setenv("MALLOC_ARENA_MAX", "7")
    ours = web_command("127.0.0.1", 8000).env
    child = Child(
        Command([sys.executable, "-c", "import os; print(os.environ['MALLOC_ARENA_MAX'])"], env=ours),
        tmp_path / "a.log",
    )
    child.process.wait()
    assert child.output() == "7\n"
