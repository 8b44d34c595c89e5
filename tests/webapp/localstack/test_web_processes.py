"""The web server's processes on a machine that gives them no time."""

import os
import signal
import subprocess
import sys
import time
from pathlib import Path

import httpx
import psutil
import pytest

from tests.patience import SECONDS
from webapp.localstack.ports import free_ports
from webapp.localstack.stack import web_server

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
