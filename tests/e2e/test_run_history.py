"""The history of a run in a browser. It continues by itself, and fits a phone."""

import pytest
from playwright.sync_api import expect

from tests.e2e.look import faults
from tests.e2e.test_run_page import run  # noqa: F401 - a fixture

pytestmark = pytest.mark.browser


def test_the_history_goes_on_while_it_is_looked_at(open_page, as_researcher, process, run):  # noqa: F811
    trainer = process(run)
    page = open_page(as_researcher)
    page.goto(f"/runs/{run.id}")
    page.get_by_role("link", name="History").click()
    page.wait_for_selector('#connection[data-state="live"]')
    rows = page.locator("#history tbody tr")
    expect(rows).to_have_count(2)
    other = open_page(as_researcher)
    other.goto(f"/runs/{run.id}")
    other.get_by_role("button", name="Stop").click()
    expect(rows).to_have_count(3)
    expect(rows.first).to_contain_text("Asked to stop")
    expect(rows.first).to_contain_text("Rosa")
    trainer.post(trainer.event("state", state="stopped", reason="Stopped after step 3, as somebody had asked it to"))
    expect(rows.first).to_contain_text("Stopped after step 3")
    for scheme in ("light", "dark"):
        for width in (1280, 390):
            page.emulate_media(color_scheme=scheme)
            page.set_viewport_size({"width": width, "height": 800})
            assert faults(page) == []
