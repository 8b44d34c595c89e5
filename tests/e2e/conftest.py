"""A running stack, and a browser to look at it."""

from collections.abc import Iterator

import pytest
from playwright.sync_api import Browser, BrowserContext, Page

from tests.e2e.live import open_page, process, server, wait_for_scripts  # noqa: F401 - fixtures
from tests.stack import Stack


@pytest.hookimpl(trylast=True)
def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Moves tests that stop the stack behind all others."""
    items.sort(key=lambda item: item.get_closest_marker("stops_the_stack") is not None)


@pytest.fixture(scope="session")
def stack() -> Iterator[Stack]:
    """All services, with the demo's owner but without the demo's data. Each test brings its own data and model."""
    running = Stack("--no-demo")
    try:
        running.wait_until_up()
        yield running
    finally:
        running.stop()


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
