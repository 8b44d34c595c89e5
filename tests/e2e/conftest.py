"""A running stack, and a browser to look at it."""

import shlex
import tempfile
from collections.abc import Iterator
from pathlib import Path

import pytest
from playwright.sync_api import Browser, BrowserContext, Page

from tests import fork_server, schema
from tests.e2e.live import open_page, process, server, wait_for_scripts  # noqa: F401 - fixtures
from tests.stack import ROOT, Stack
from webapp.localstack.postgres import Postgres


@pytest.hookimpl(trylast=True)
def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Moves tests that share the stack behind all others, because it costs time while it runs, and tests that stop it to the end."""
    items.sort(key=lambda item: (item.get_closest_marker("stops_the_stack") is not None, _shares_the_stack(item)))


def _shares_the_stack(item: pytest.Item) -> bool:
    return "stack" in getattr(item, "fixturenames", ())


@pytest.fixture(scope="session")
def stack() -> Iterator[Stack]:
    """All services, with the demo's owner but without the demo's data. Each test brings its own data and model. If the schema of the
    migrations is kept (`tests/schema.py`), the database starts with it, and `upgrade` finds nothing to do. The processes of runs and of
    other jobs are forked from one that has loaded torch. Those of `test_two_nodes.py` start as in the product.
    """
    trainer = shlex.join(fork_server.command(loaded=(*fork_server.TRAINER, "tests.e2e.short_lessons")))
    command = f"cd {shlex.quote(str(ROOT))} && exec env -u OMP_NUM_THREADS {trainer} job"
    running = Stack("--no-demo", var=_with_schema(), env={"TRAINER_COMMAND": command})
    try:
        running.wait_until_up()
        yield running
    finally:
        running.stop()


def _with_schema() -> Path:
    """The folder of a stack."""
    var = Path(tempfile.mkdtemp(prefix="ts-stack-"))
    var.chmod(0o755)  # as root the database runs as another user
    if schema.schema_file().exists():
        server = Postgres(var)
        server.start()
        schema.read_into(server)
        server.stop()
    return var


@pytest.fixture
def window(chromium: Browser, stack: Stack) -> Iterator[BrowserContext]:
    context = chromium.new_context(base_url=stack.url, viewport={"width": 1280, "height": 800})
    yield context
    context.close()


@pytest.fixture
def page(window: BrowserContext, stack: Stack) -> Iterator[Page]:
    """A page signed in as the demo's owner. If the browser refuses or throws something, the test fails."""
    page = window.new_page()
    wait_for_scripts(page)
    complaints: list[str] = []
    page.on("pageerror", lambda error: complaints.append(f"error: {error}"))
    page.on(
        "console",
        lambda message: (
            complaints.append(f"{message.text} {message.location['url']}") if message.type == "error" else None
        ),
    )
    window.add_cookies(stack.cookies)
    page.goto("/" if stack.cookies else stack.manage("demo", "--link"))
    page.wait_for_url(f"{stack.url}/")
    stack.cookies = window.cookies()
    yield page
    assert complaints == []
