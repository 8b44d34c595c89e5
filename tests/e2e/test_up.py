"""`manage.py up`: one address, one link, services that are restarted, a clean end."""

import os
import signal
import time

import httpx
import psutil
import pytest
from playwright.sync_api import Page

from tests.stack import Stack
from tests.timeouts import SECONDS

pytestmark = [pytest.mark.stack, pytest.mark.slow]


def service_pid(stack: Stack, name: str, needle: str) -> int:
    for process in psutil.Process(stack.process.pid).children():
        if needle in " ".join(process.cmdline()):
            return process.pid
    raise AssertionError(f"no {name} among the children of the supervisor")


def test_everything_answers(stack: Stack):
    assert httpx.get(f"{stack.url}/healthz", timeout=SECONDS).json() == {"web": "ok"}
    deadline = time.monotonic() + 2 * SECONDS
    while set((seen := httpx.get(f"{stack.url}/readyz", timeout=SECONDS)).json().values()) != {"ok"}:
        assert seen.status_code == 200 and time.monotonic() < deadline, seen.json()
        time.sleep(1)
    assert list(seen.json()) == ["database", "redis", "workers", "ray", "disk"]
    assert stack.api().get("me").json()["workspace"]["slug"] == "demo"


def test_a_second_up_says_where_the_first_one_is(stack: Stack):
    said = stack.manage("up")
    assert "already running" in said and stack.url in said


def test_a_killed_web_server_comes_back(stack: Stack):
    os.kill(service_pid(stack, "web", "uvicorn"), signal.SIGKILL)
    stack.wait_for("web       restarting", timeout_s=60)
    deadline = time.monotonic() + 2 * SECONDS
    while True:
        try:
            if httpx.get(f"{stack.url}/healthz", timeout=SECONDS).status_code == 200:
                break
        except httpx.HTTPError:
            pass
        assert time.monotonic() < deadline, stack.logs()
        time.sleep(0.2)


def test_a_lost_database_shows_as_a_pause_and_ends(stack: Stack):
    client = httpx.Client(base_url=stack.url, follow_redirects=True, timeout=SECONDS)
    os.kill(service_pid(stack, "postgres", "/bin/postgres"), signal.SIGKILL)
    seen = set()
    deadline = time.monotonic() + 2 * SECONDS
    while True:
        answer = client.get("/sign-in")
        seen.add(answer.status_code)
        health = httpx.get(f"{stack.url}/readyz", timeout=SECONDS)
        if health.status_code == 200 and answer.status_code == 200:
            break
        assert "Traceback" not in answer.text
        assert time.monotonic() < deadline, stack.logs()
        time.sleep(0.2)
    assert seen <= {200, 503}


def test_nothing_listens_beyond_this_machine(stack: Stack):
    family = psutil.Process(stack.process.pid).children(recursive=True)
    listening = {
        (process.name(), socket.laddr.ip)
        for process in family
        for socket in connections(process)
        if socket.status == psutil.CONN_LISTEN
    }
    assert {"raylet", "gcs_server"} <= {name for name, _ in listening}
    assert {address for _, address in listening} <= {"127.0.0.1", "::1", "::ffff:127.0.0.1"}


def test_ray_starts_no_autoscaler_and_nothing_that_sends_logs_to_drivers(stack: Stack):
    started = stack.programs()
    assert any("raylet" in each for each in started)
    assert not [each for each in started if "_private/monitor.py" in each or "log_monitor.py" in each]


def connections(process: psutil.Process) -> list:
    """The TCP sockets of a process, or none if it has just ended."""
    try:
        return process.net_connections("tcp")
    except psutil.NoSuchProcess:
        return []


@pytest.fixture
def signed_out(stack: Stack):
    stack.cookies = []


@pytest.mark.browser
@pytest.mark.usefixtures("signed_out")  # so that the fixture `page` takes the link
def test_the_link_signs_in(page: Page, stack: Stack):
    assert page.url == f"{stack.url}/"
    assert page.locator("h1").inner_text() == "Demo"


@pytest.mark.stops_the_stack
def test_stopping_leaves_no_process_and_keeps_the_data(stack: Stack):
    """This holds after all changes that earlier tests have made to the stack."""
    family = psutil.Process(stack.process.pid).children(recursive=True)
    assert any("raylet" in process.name() for process in family)
    assert stack.stop(keep=True) == 0
    assert not [process for process in family if process.is_running() and process.status() != psutil.STATUS_ZOMBIE]
    assert (stack.var / "postgres" / "PG_VERSION").exists()
