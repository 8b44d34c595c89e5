"""A token limit in a browser: it is set by keyboard, refused if that much is used, and its use moves without a reload."""

import os

import pytest
from playwright.sync_api import expect

from tests.e2e.look import layout_faults
from tests.e2e.test_run_page import run  # noqa: F401 - a fixture
from webapp.experiments.models import Run

pytestmark = pytest.mark.browser


def tell(trainer, step, tokens):
    trainer.post(trainer.event("metrics", step, values={"perf/generated_tokens": float(tokens)}, histograms={}))


def test_a_limit_is_set_shown_and_refused_where_it_is_used(open_page, as_researcher, run, process):  # noqa: F811
    trainer = process(run)
    tell(trainer, 1, 1200)
    page = open_page(as_researcher)
    page.goto(f"/runs/{run.id}")

    def ask(tokens):
        page.locator("summary[aria-label='More']").press("Enter")
        page.get_by_role("button", name="Token limit…").press("Enter")
        page.get_by_label("Tokens", exact=True).fill(tokens)
        for scheme in ("light", "dark"):
            for width in (1280, 390):
                page.emulate_media(color_scheme=scheme)
                page.set_viewport_size({"width": width, "height": 800})
                assert layout_faults(page) == []
                if folder := os.environ.get("TOUCHSTONE_LOOK"):
                    page.screenshot(path=f"{folder}/tokens-{scheme}-{width}.png")
        page.get_by_label("Tokens", exact=True).press("Enter")

    ask("800")
    expect(page.get_by_text("must be more than the 1,200 that it has generated")).to_be_visible()
    ask("5,000")
    line = page.get_by_text("Token limit: 1,200 of 5,000 tokens generated")
    expect(line).to_be_visible()
    assert Run.objects.get(id=run.id).token_limit == 5000
    page.set_viewport_size({"width": 1280, "height": 800})  # a phone shows the connection in the drawer only
    if folder := os.environ.get("TOUCHSTONE_LOOK"):
        page.screenshot(path=f"{folder}/tokens-line.png")
    page.wait_for_selector('#connection[data-state="live"]')
    tell(trainer, 2, 300)
    tell(trainer, 3, 41)
    expect(page.get_by_text("Token limit: 1,541 of 5,000 tokens generated")).to_be_visible()
