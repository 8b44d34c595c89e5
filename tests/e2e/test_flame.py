"""A step that is chosen from the strip is shown as a line of time, by pointer and keyboard, and the newest follows the run."""

import os
import re

import pytest
from playwright.sync_api import expect

from tests.e2e.look import layout_faults
from tests.e2e.test_health import spent
from tests.e2e.test_run_page import run  # noqa: F401  the fixture

pytestmark = pytest.mark.browser
NAMES = [
    "rollout",
    "",
    "sampling",
    "reward",
    "scoring",
    "learner",
    "updating",
    "quality",
    "rollout-0",
    "saving",
    "length",
]
SPANS = [
    [0, 1, -1, 0, 6_000_000, 1], [0, 2, 0, 0, 6_000_000, 1], [0, 2, 1, 0, 2_000_000, 1], [0, 2, 1, 2_000_000, 4_000_000, 12],
    [3, 1, -1, 6_000_000, 1_000_000, 1], [3, 4, 4, 6_000_000, 1_000_000, 1],
    [5, 1, -1, 7_000_000, 3_000_000, 1], [5, 6, 6, 7_000_000, 2_900_000, 1],
    [9, 1, -1, 10_000_000, 500_000, 1],
]  # fmt: skip
BESIDE = [
    [0, 8, -1, 0, 4_000_000, 3], [3, 7, -1, 1_000_000, 5_500_000, 1], [3, 7, -1, 2_000_000, 4_500_000, 1], [3, 10, -1, 6_800_000, 100_000, 1],
]  # fmt: skip


def tell(trainer, *steps: int) -> None:
    for step in steps:
        spans = {"took": 10_500_000, "names": NAMES, "spans": SPANS, "beside": BESIDE}
        trainer.post(
            trainer.event("spans", step, **spans), trainer.event("metrics", step, values=spent(step), histograms={})
        )


@pytest.fixture
def trainer(run, process):  # noqa: F811
    trainer = process(run)
    trainer.post(trainer.event("metrics", 1, values=spent(1), histograms={}))  # as of a version without spans
    tell(trainer, 2, 3, 4)
    return trainer


def look(page, name: str) -> None:
    if folder := os.environ.get("TOUCHSTONE_LOOK"):
        for theme in ("light", "dark"):
            page.evaluate("(theme) => (document.documentElement.dataset.theme = theme)", theme)
            page.screenshot(path=f"{folder}/{name}-{theme}.png")


def test_a_column_opens_its_step_and_the_arrow_keys_walk_through_its_spans(open_page, as_researcher, trainer):
    page = open_page(as_researcher)
    page.goto(f"/runs/{trainer.run_id}")
    health = page.get_by_role("region", name="Time and machine")
    strip = health.locator(".health-strip")
    expect(strip.locator("g")).to_have_count(4)
    flame = health.locator(".flame")
    expect(flame).to_be_hidden()
    width = strip.bounding_box()["width"]
    strip.click(position={"x": width * 0.6, "y": 10})
    expect(flame.get_by_role("heading")).to_have_text("Step 3, 10.50 s")
    expect(strip.locator("g.is-chosen title")).to_have_text(re.compile("^Step 3,"))
    picture = flame.get_by_role("img")
    expect(picture).to_have_attribute(
        "aria-label",
        "The time of step 3: Sampling 6 s, Rewards 1 s, Training 3 s, Checkpoint 0.500 s. The arrow keys move between the spans.",
    )
    bars = picture.locator(".flame-span")
    expect(bars).to_have_count(len(SPANS) + len(BESIDE))
    tops = bars.locator("rect").evaluate_all("(bars) => bars.map((bar) => Number(bar.getAttribute('y')))")
    nested = tops[: len(SPANS)]
    assert nested[:4] == sorted(set(nested))[:3] + nested[2:3]  # work, phase, and the reports in one lane
    worker, judge, other, short = tops[len(SPANS) :]
    assert len({worker, judge, other}) == 3, "spans of the same time have lanes of their own"
    assert short == worker > max(nested), "a lane is used again"

    page.mouse.move(0, 0)
    picture.focus()
    foot = flame.locator(".flame-foot")
    page.keyboard.press("ArrowRight")
    expect(foot).to_have_text("Sampling: 6 s, from 0 s on")
    page.keyboard.press("End")
    expect(foot).to_have_text("length (at the same time): 0.100 s, from 6.800 s on")
    bars.nth(3).locator("rect").hover()
    expect(foot).to_have_text("sampling, 12 together: 4 s, from 2 s on")
    flame.get_by_text("In numbers").click()
    expect(flame.get_by_role("row")).to_have_count(1 + len(SPANS) + len(BESIDE))
    flame.get_by_text("In numbers").click()
    look(page, "flame")

    height = page.evaluate("document.documentElement.scrollHeight")
    slider = health.get_by_role("slider", name="Step whose time is shown")
    slider.focus()
    page.keyboard.press("ArrowLeft")
    expect(flame.get_by_role("heading")).to_have_text("Step 2, 10.50 s")
    assert page.evaluate("document.documentElement.scrollHeight") == height  # nothing moves
    page.keyboard.press("ArrowLeft")
    expect(flame.get_by_role("heading")).to_have_text("Step 1")
    expect(flame).to_contain_text("Nothing is kept of this step. There are spans of steps 2 to 4.")
    picture.focus()
    page.set_viewport_size({"width": 390, "height": 844})
    assert layout_faults(page) == []
    flame.get_by_role("button", name="Close").click()
    expect(flame).to_be_hidden()
    expect(strip.locator("g.is-chosen")).to_have_count(0)


def test_the_newest_step_is_followed_and_an_earlier_one_stays(open_page, as_researcher, trainer):
    page = open_page(as_researcher)
    page.goto(f"/runs/{trainer.run_id}")
    page.wait_for_selector('#connection[data-state="live"]')
    health = page.get_by_role("region", name="Time and machine")
    expect(health.locator(".health-strip g")).to_have_count(4)
    slider = health.get_by_role("slider", name="Step whose time is shown")
    slider.focus()
    page.keyboard.press("Enter")
    heading = health.locator(".flame").get_by_role("heading")
    expect(heading).to_have_text("Step 4, 10.50 s")
    tell(trainer, 5)
    expect(heading).to_have_text("Step 5, 10.50 s")
    expect(health.locator(".flame .flame-span")).to_have_count(len(SPANS) + len(BESIDE))
    page.keyboard.press("ArrowLeft")
    expect(heading).to_have_text("Step 4, 10.50 s")
    tell(trainer, 6)
    expect(health.locator(".health-strip g")).to_have_count(6)
    expect(heading).to_have_text("Step 4, 10.50 s")


def test_the_slider_shows_the_step_on_which_it_already_stands(open_page, as_researcher, trainer):
    page = open_page(as_researcher)
    page.goto(f"/runs/{trainer.run_id}")
    health = page.get_by_role("region", name="Time and machine")
    slider = health.get_by_role("slider", name="Step whose time is shown")
    flame = health.locator(".flame")
    close = flame.get_by_role("button", name="Close")
    expect(slider).to_have_attribute("aria-valuetext", "Step 4")  # the newest, before any is chosen
    for key in ("End", "ArrowRight", "Enter"):
        slider.press(key)
        expect(flame.get_by_role("heading")).to_have_text("Step 4, 10.50 s")
        close.click()
        expect(flame).to_be_hidden()
    box = slider.bounding_box()
    slider.click(position={"x": box["width"] - 2, "y": box["height"] / 2})
    expect(flame.get_by_role("heading")).to_have_text("Step 4, 10.50 s")
    close.click()
    slider.press("Tab")  # a key that does not belong to the slider shows nothing
    expect(flame).to_be_hidden()
    slider.press("Home")
    expect(flame.get_by_role("heading")).to_have_text("Step 1")
    slider.press("Home")
    expect(flame.get_by_role("heading")).to_have_text("Step 1")


def test_a_run_without_spans_says_so(open_page, as_researcher, run, process):  # noqa: F811
    trainer = process(run)
    trainer.post(trainer.event("metrics", 1, values=spent(1), histograms={}))
    page = open_page(as_researcher)
    page.goto(f"/runs/{run.id}")
    health = page.get_by_role("region", name="Time and machine")
    health.locator(".health-strip").click()
    expect(health.locator(".flame")).to_contain_text("This run has recorded no spans")
    assert layout_faults(page) == []
