"""Pausing in a browser. Two people look at one run. It saves, waits for them, and then waits in the line again."""

import pytest
from playwright.sync_api import expect

from tests.e2e.look import layout_faults
from tests.e2e.test_run_page import run  # noqa: F401 - a fixture
from webapp.experiments.models import Run

pytestmark = pytest.mark.browser


def test_one_pauses_it_and_another_resumes_it(open_page, as_researcher, as_owner, process, run):  # noqa: F811
    trainer = process(run)
    rosa, owner = open_page(as_researcher), open_page(as_owner)
    for page in (rosa, owner):
        page.goto(f"/runs/{run.id}")
        page.wait_for_selector('#connection[data-state="live"]')
    rosa.get_by_role("button", name="Pause").click()
    expect(owner.locator("[data-bind=state]").first).to_have_text("Pausing")
    expect(owner.get_by_text("asked it to pause")).to_be_visible()
    expect(owner.get_by_role("button", name="Pause")).to_be_hidden()
    trainer.post(trainer.event("state", 3, state="stopped", reason="Stopped after step 3"))
    for page in (rosa, owner):
        expect(page.locator("[data-bind=state]").first).to_have_text("Paused")
        expect(page.get_by_text("Paused after step 3")).to_be_visible()
        expect(page.get_by_role("button", name="Stop", exact=True)).to_be_visible()
    for scheme in ("light", "dark"):
        for width in (1280, 390):
            owner.emulate_media(color_scheme=scheme)
            owner.set_viewport_size({"width": width, "height": 800})
            assert layout_faults(owner) == []
    owner.get_by_role("button", name="Resume").press("Enter")
    expect(rosa.locator("[data-bind=state]").first).to_have_text("Queued")
    assert Run.objects.get(id=run.id).attempt == 2
