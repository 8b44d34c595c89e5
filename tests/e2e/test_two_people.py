"""Two people press in the same moment, each in a browser of their own: the run, its history and both pages agree about what came of it."""

import re
import time
from contextlib import suppress

import pytest
from playwright.sync_api import Error, Page, expect

from tests.e2e.test_run_page import run  # noqa: F401 - a fixture
from webapp.core.models import AuditEntry
from webapp.experiments.models import Run

pytestmark = pytest.mark.browser
SOON_MS = 1000


@pytest.fixture
def two(open_page, as_researcher, as_owner, run) -> tuple[Page, Page]:  # noqa: F811
    pages = open_page(as_researcher), open_page(as_owner)
    for page in pages:
        come(page, run)
    return pages


def come(page: Page, run: Run) -> None:  # noqa: F811
    with suppress(Error):  # a page whose run ends loads itself again, once, and interrupts whatever is under way
        page.goto("about:blank")
    page.goto("about:blank")
    page.goto(f"/runs/{run.id}")
    page.wait_for_selector('#connection[data-state="live"]')


def press(*presses: tuple[Page, str]) -> None:
    """Presses these buttons in the same moment, and waits for the pages that come."""
    for page, _ in presses:
        page.locator("html").evaluate("(root) => void (root.dataset.before = '')")
    moment = time.time() * 1000 + SOON_MS
    for page, name in presses:
        button = page.get_by_role("button", name=name, exact=True)
        button.evaluate("(button, moment) => void setTimeout(() => button.click(), moment - Date.now())", moment)
    for page, _ in presses:
        expect(page.locator("html")).not_to_have_attribute("data-before", "")
        page.wait_for_selector('#connection[data-state="live"]')


def moves(run: Run) -> list[str]:  # noqa: F811
    """What people did to the run, in order."""
    entries = AuditEntry.objects.filter(object_type="run", object_id=run.id, actor__isnull=False).order_by("id")
    return [
        entry.action for entry in entries if re.fullmatch("run.(stopping|stopped|queued|paused|pausing)", entry.action)
    ]


def test_both_press_stop(two, process, run):  # noqa: F811
    trainer = process(run)
    for page in two:
        come(page, run)
    press((two[0], "Stop"), (two[1], "Stop"))
    for page in two:
        expect(page.locator("[data-bind=state]").first).to_have_text("Stopping")
    assert moves(run).count("run.stopping") == 1
    trainer.post(trainer.event("state", 3, state="stopped", reason="Stopped after step 3"))
    for page in two:
        expect(page.locator("[data-bind=state]").first).to_have_text("Stopped")


def test_both_press_resume(two, process, run):  # noqa: F811
    trainer = process(run)
    trainer.post(trainer.event("state", 3, state="failed", reason="The disk is full"))
    for page in two:
        come(page, run)
    press((two[0], "Resume"), (two[1], "Resume"))
    run.refresh_from_db()
    assert (run.attempt, moves(run).count("run.queued")) == (2, 1)
    for page in two:
        expect(page.locator("[data-bind=state]").first).to_have_text("Queued")


def test_one_presses_stop_and_the_other_resume(two, process, run):  # noqa: F811
    """Either may come first. Stop, then resume: it waits in the line. Resume, then stop: it is over."""
    trainer = process(run)
    two[0].get_by_role("button", name="Pause").click()
    trainer.post(trainer.event("state", 3, state="stopped", reason="Stopped after step 3"))
    for _ in range(4):
        for page in two:
            come(page, run)
            expect(page.locator("[data-bind=state]").first).to_have_text("Paused")
        before = len(moves(run)), Run.objects.get(id=run.id).attempt
        press((two[0], "Stop"), (two[1], "Resume"))
        run.refresh_from_db()
        came = moves(run)[before[0] :]
        assert came in (["run.stopped", "run.queued"], ["run.queued", "run.stopped"], ["run.stopped"], ["run.queued"])
        assert run.attempt == before[1] + came.count("run.queued")
        assert came[-1] == f"run.{run.state}"
        for page in two:
            expect(page.locator("[data-bind=state]").first).to_have_text(run.state.capitalize())
        # a process has had the attempt
        Run.objects.filter(id=run.id).update(state="paused", ended_at=run.state_at, heartbeat_at=run.state_at)
