"""Stopping in a browser, with two people at one run. Ending it without waiting asks for confirmation first."""

import pytest
from playwright.sync_api import expect

from tests.e2e.look import layout_faults
from tests.e2e.test_run_page import run  # noqa: F401 - a fixture
from webapp.experiments.models import Run

pytestmark = pytest.mark.browser


def test_one_asks_it_to_stop_and_another_ends_it_at_once(open_page, as_researcher, as_owner, process, run):  # noqa: F811
    trainer = process(run)
    trainer.post(trainer.event("metrics", 1, values={"perf/step_s": 380.0}))
    rosa, owner = open_page(as_researcher), open_page(as_owner)
    for page in (rosa, owner):
        page.goto(f"/runs/{run.id}")
        page.wait_for_selector('#connection[data-state="live"]')
    rosa.get_by_role("button", name="Stop", exact=True).click()
    expect(
        owner.get_by_text("It saves and gives up its present step, which may be about 6 min of work")
    ).to_be_visible()
    expect(owner.get_by_role("button", name="Stop", exact=True)).to_be_hidden()
    owner.get_by_role("button", name="Stop at once…").press("Enter")
    for scheme in ("light", "dark"):
        for width in (1280, 390):
            owner.emulate_media(color_scheme=scheme)
            owner.set_viewport_size({"width": width, "height": 800})
            assert layout_faults(owner) == []
    owner.get_by_role("dialog").get_by_role("button", name="Stop at once").press("Enter")
    expect(rosa.get_by_text("asked it to stop at once")).to_be_visible()
    assert Run.objects.get(id=run.id).stop_by is not None
