"""A web server of its own, and Chromium beside it."""

import os
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from playwright.sync_api import Browser, sync_playwright

from benchmarks.ingest import services
from benchmarks.machine import away
from tests.chromium import FLAGS, HOW_TO_GET_IT, LIKE_PEOPLES


@contextmanager
def served() -> Iterator[tuple[str, Browser]]:
    """The address of the server and a browser. Says that the measurement is skipped if there is no Chromium."""
    if LIKE_PEOPLES is None:
        away(HOW_TO_GET_IT)
    os.environ["DJANGO_ALLOW_ASYNC_UNSAFE"] = "true"  # Playwright runs an event loop in this thread
    with (
        tempfile.TemporaryDirectory(prefix="ts-bench-") as folder,
        services(Path(folder)) as address,
        sync_playwright() as playwright,
    ):
        browser = playwright.chromium.launch(executable_path=LIKE_PEOPLES, args=FLAGS)
        yield address, browser
        browser.close()
