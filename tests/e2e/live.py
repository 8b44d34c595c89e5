"""A real web server in this process, and a training process that only sends messages: browser tests with these need no Ray."""

import asyncio
import importlib
import socket
import threading
import time
from collections.abc import Callable, Coroutine
from functools import partial
from pathlib import Path
from typing import Any

import httpx
import pytest
import uvicorn
from asgiref.sync import async_to_sync
from playwright.sync_api import Page

from tests.connection_pool import shared_connections
from tests.timeouts import SECONDS
from webapp.core import broadcast
from webapp.experiments.lifecycle import tokens
from webapp.experiments.models import Run

VENDOR = Path(__file__).parents[2] / "webapp" / "static" / "vendor" / "uplot.js"


class Server:
    """Uvicorn in a thread. `stop` breaks every connection, `start` answers at the same address again."""

    def __init__(self) -> None:
        with socket.socket() as probe:
            probe.bind(("127.0.0.1", 0))
            self.port = probe.getsockname()[1]
        self.url = f"http://127.0.0.1:{self.port}"

    def start(self) -> None:
        import webapp.asgi

        app = importlib.reload(webapp.asgi).application  # with the settings of this test
        config = uvicorn.Config(app, port=self.port, log_level="warning", timeout_graceful_shutdown=1)
        self.server = uvicorn.Server(config)
        self.thread = threading.Thread(target=lambda: asyncio.run(self._serve()), daemon=True)
        self.thread.start()
        deadline = time.monotonic() + SECONDS
        while not self.server.started:
            if time.monotonic() > deadline:
                raise RuntimeError(f"the web server did not start within {SECONDS} s")
            time.sleep(0.02)

    async def _serve(self) -> None:
        self.loop = asyncio.get_running_loop()
        await self.server.serve()

    def stop(self) -> None:
        self.server.should_exit = True
        self.thread.join(SECONDS)


@pytest.fixture
def server(transactional_db, settings, monkeypatch):  # noqa: F811 - pytest-django's fixture of this name
    if not VENDOR.exists():
        pytest.skip("the browser libraries are not there: run `make setup`")
    settings.WHITENOISE_USE_FINDERS = settings.WHITENOISE_AUTOREFRESH = True
    found = Server()
    with shared_connections():
        found.start()
        monkeypatch.setattr(broadcast, "async_to_sync", partial(_also_from_the_test, found))
        yield found
        found.stop()


def _also_from_the_test(server: Server, send: Callable[[], Coroutine[Any, Any, None]]) -> Callable[[], None]:
    """Sends broadcasts of this test to open pages, like those of a worker.

    Playwright keeps an event loop running in the thread of the tests, from which asgiref refuses to send.
    """
    try:
        asyncio.get_running_loop()
    except RuntimeError:
        return async_to_sync(send)
    return lambda: asyncio.run_coroutine_threadsafe(send(), server.loop).result(SECONDS)


_SAYS_WHEN_READY = """new MutationObserver((_, observer) => {
  if (!document.documentElement) return;
  document.documentElement.style.minHeight = "1px";  // a page without a height is not seen, and nothing would wait for it
  observer.disconnect();
}).observe(document, { childList: true });
addEventListener("DOMContentLoaded", () => {
  document.documentElement.style.minHeight = "";
  document.documentElement.dataset.ready = "";
});"""


def wait_for_scripts(page: Page) -> None:
    """Makes each action on `page` wait until the modules of the document have run.

    Playwright acts on an element as soon as it is parsed. A key or click that comes before the modules have run does nothing.
    """
    page.add_init_script(_SAYS_WHEN_READY)
    page.add_locator_handler(page.locator("html:not([data-ready])"), lambda: None)  # until it is gone, Playwright waits


@pytest.fixture
def open_page(chromium, server):
    """`open_page(client)`: a browser page with the session of a signed-in Django test client.

    An error that the page writes to its console fails the test at the end.
    """
    contexts, errors = [], []

    def _open(client, **options):
        context = chromium.new_context(base_url=server.url, viewport={"width": 1280, "height": 800}, **options)
        context.add_cookies([{"name": "sessionid", "value": client.cookies["sessionid"].value, "url": server.url}])
        contexts.append(context)
        page = context.new_page()
        page.set_default_timeout(SECONDS * 1000)
        wait_for_scripts(page)
        page.on("pageerror", lambda error: errors.append(str(error)))
        return page

    yield _open
    for context in contexts:
        context.close()
    assert not errors, errors


class Process:
    """Plays a training process over real HTTP, through the real ingest endpoint."""

    def __init__(self, url: str, run: Run) -> None:
        self.run_id, self.attempt, self.seq = run.id, run.attempt, run.last_seq
        headers = {"Authorization": f"Bearer {tokens.run_token(run)}"}
        self.http = httpx.Client(base_url=url, headers=headers, timeout=SECONDS)

    def event(self, kind: str, step: int = 0, **data) -> dict:
        self.seq += 1
        return {"seq": self.seq, "time": "2026-11-21T12:00:00Z", "step": step, "data": {"kind": kind, **data}}

    def post(self, *events: dict) -> None:
        body = {"attempt": self.attempt, "events": events}
        self.http.post(f"/api/v1/ingest/runs/{self.run_id}/events", json=body).raise_for_status()


@pytest.fixture
def process(server):
    """`process(run)`: the process of `run`, after it has said that it is running."""
    made = []

    def _start(run: Run) -> Process:
        Run.objects.filter(id=run.id).update(state="starting", ray_job_id=f"run-{run.id}-1", next_try_at=None)
        made.append(Process(server.url, run))
        made[-1].post(made[-1].event("state", state="running"))
        return made[-1]

    yield _start
    for each in made:
        each.http.close()
