"""A list of 8,000 rollouts: the page holds what is near the view, and what one reads stays where it is."""

import os
import time
from typing import Any

import pytest
from playwright.sync_api import expect

from tests.e2e.look import layout_faults
from tests.e2e.test_accessibility import AXE, LOOK
from tests.e2e.test_run_page import run  # noqa: F401 - a fixture
from tests.timeouts import SECONDS
from webapp.experiments.models import Rollout

pytestmark = pytest.mark.browser

STEPS, GROUPS, RESPONSES = 20, 50, 8  # 8,000 in 1,000 cards; a page of 100 ends within a group


def rollout(run, step: int, group: int, index: int) -> Rollout:  # noqa: F811
    words = "word " * (5 + (group * 7 + index * 3) % 30)
    content: dict[str, Any] = {
        "phase": "train",
        "example_key": f"e{group}",
        "group": group,
        "index": index,
        "prompt": f"Prompt {group} of step {step}",
        "response": f"{step}-{group}-{index} {words}",
        "finish_reason": "stop",
        "reward": (group * RESPONSES + index) % 97 / 97,
        "criteria": [],
    }
    place = {"run": run, "step": step, "phase": "train", "group": group, "index": index, "example_key": f"e{group}"}
    return Rollout(**place, reward=content["reward"], content=content)


def fill(run, steps: int = STEPS, groups: int = GROUPS):  # noqa: F811
    rows = (
        rollout(run, step, group, index)
        for step in range(1, steps + 1)
        for group in range(groups)
        for index in range(RESPONSES)
    )
    Rollout.objects.bulk_create(rows, batch_size=2000)
    return run


def at_top(page) -> str:
    """The first card below what sticks to the upper edge."""
    return page.evaluate(
        """() => { const under = document.querySelector(".rollout-tools").getBoundingClientRect().bottom;
        return [...document.querySelectorAll(".group")].find((card) => card.getBoundingClientRect().bottom > under).dataset.group; }"""
    )


SCROLL = """async (by) => {
    const inView = (card) => card.getBoundingClientRect().bottom > 0 && card.getBoundingClientRect().top < innerHeight;
    const seen = new Map(), rest = () => new Promise((done) => setTimeout(done, 25));
    const settled = async () => { do await rest(); while ([...document.querySelectorAll(".window-gap")].some(inView)); };
    const known = () => !document.getElementById("rollout-count").textContent.includes("+"); // no page is on its way
    let still = 0, most = 0;
    while (still < 40) {
        for (const card of [...document.querySelectorAll(".group")].filter(inView)) {
            seen.set(card.dataset.group, [...card.querySelectorAll(".response-text")].map((text) => text.textContent.split(" ")[0]));
        }
        most = Math.max(most, document.querySelectorAll("#groups *").length);
        const before = scrollY;
        scrollBy({ top: by * innerHeight, behavior: "instant" });
        await settled();
        still = known() && Math.abs(scrollY - before) < 1 ? still + 1 : 0;
    }
    return { seen: [...seen], most };
}"""


def test_to_the_end_and_back_the_page_is_bounded_and_shows_every_row(open_page, as_researcher, run):  # noqa: F811
    fill(run)
    page = open_page(as_researcher)
    page.set_viewport_size({"width": 1600, "height": 3000})
    page.goto(f"/runs/{run.id}/rollouts?step=all")
    page.locator(".group").nth(12).wait_for()
    # Cards have their places and texts, and are not painted. Painting took half of the time, and this test does not look at it
    page.evaluate("document.documentElement.style.visibility = 'hidden'")
    down, back = page.evaluate(SCROLL, 0.9), page.evaluate(SCROLL, -0.9)
    assert page.evaluate("window.scrollY") == 0
    wanted = [f"{step}-{group}" for step in range(STEPS, 0, -1) for group in reversed(range(GROUPS))]
    whole = [[name, [f"{name}-{index}" for index in range(RESPONSES)]] for name in wanted]
    assert down["seen"] == whole
    assert sorted(back["seen"]) == sorted(whole)
    card = page.evaluate("document.querySelector('.group').querySelectorAll('*').length + 1")
    assert max(down["most"], back["most"]) < 120 * card, "of 1,000 cards"


@pytest.fixture
def filled(run):  # noqa: F811
    return fill(run, steps=60, groups=5)


def test_what_one_reads_stays_where_it_is(open_page, as_researcher, filled, process):
    page = open_page(as_researcher)
    page.goto(f"/runs/{filled.id}/rollouts?step=all")
    page.locator(".group").first.wait_for()
    page.wait_for_selector('#connection[data-state="live"]')
    shown = page.locator("#step-shown")
    while int(shown.text_content()) > 57:
        page.evaluate("scrollBy({ top: 700, behavior: 'instant' })")
        page.wait_for_timeout(40)
    name = at_top(page)
    expect(shown).to_have_text(name.split("-")[0])
    tools = page.locator(".rollout-tools")
    card = page.locator(f".group[data-group='{name}']")
    before, high = card.bounding_box(), tools.bounding_box()["height"]
    trainer = process(filled)
    trainer.post(trainer.event("rollouts", 70, rollouts=[rollout(filled, 70, 0, 0).content]))
    expect(page.get_by_role("button", name="1 new step: show the newest")).to_be_visible()
    assert card.bounding_box() == before and tools.bounding_box()["height"] == high
    # the way to an episode, a link away from the page, and back
    page.wait_for_function("(name) => history.state?.reading?.key === name", arg=name)
    page.goto(f"/runs/{filled.id}")
    page.go_back()
    # a card is drawn again when the page beside its own comes, and between the two it has no place
    arrived = "([name, y]) => Math.abs(document.querySelector(`.group[data-group='${name}']`)?.getBoundingClientRect().top - y) <= 2"
    page.wait_for_function(arrived, arg=[name, before["y"]])
    page.reload()
    expect(card).to_be_in_viewport()
    first = page.locator(".group[data-group='60-4']")
    deadline = time.monotonic() + SECONDS
    while time.monotonic() < deadline:  # each page that comes above leaves the view where it is
        page.keyboard.press("Home")
        page.wait_for_timeout(200)
        box = first.bounding_box() if first.count() else None
        if box and 0 <= box["y"] < 800:
            break
        page.evaluate("document.querySelector('#rollouts-before:not([hidden])')?.click()")
    expect(first).to_be_in_viewport()


def test_by_keyboard_and_to_a_step(open_page, as_researcher, filled):
    page = open_page(as_researcher)
    page.goto(f"/runs/{filled.id}/rollouts?step=all")
    page.locator(".group").first.wait_for()
    feed = page.get_by_role("feed", name="Prompts with their responses")
    expect(feed.get_by_role("article").first).to_have_attribute("aria-posinset", "1")
    expect(feed.get_by_role("article").first).to_have_attribute("aria-setsize", "-1")
    focused = page.locator(".group:focus")
    for number in range(1, 41):
        page.keyboard.press("j")
        expect(focused).to_have_attribute("aria-posinset", str(number))
    expect(focused).to_have_attribute("data-group", "53-0")
    page.keyboard.press("PageUp")
    expect(focused).to_have_attribute("data-group", "53-1")
    for _ in range(30):
        page.keyboard.press("ArrowDown")
        if focused.get_attribute("data-group") != "53-1":
            break
        page.wait_for_timeout(150)  # the browser scrolls smoothly
    expect(focused).to_have_attribute("data-group", "53-0")
    # the card with the focus stays, however far one scrolls
    page.evaluate("scrollBy(0, 20000)")
    page.wait_for_timeout(500)
    page.evaluate("scrollBy(0, 20000)")
    expect(focused).to_have_attribute("data-group", "53-0")
    page.get_by_role("slider", name="Step").fill("1")
    expect(page.locator("#step-shown")).to_have_text("2")
    expect(page.locator(".group[data-group='2-4']")).to_be_in_viewport()
    assert at_top(page) == "2-4"
    expect(page.locator(".group[data-group='3-0']")).to_be_attached()  # before that, the list has its end above
    page.mouse.move(600, 600)
    page.mouse.wheel(0, -900)  # a card has some 700
    expect(page.locator(".group[data-group='3-0']")).to_be_in_viewport()
    expect(page.locator("#step-shown")).to_have_text("3")
    page.keyboard.press(".")
    expect(page.locator("#step-shown")).to_have_text("4")


@pytest.mark.parametrize(("theme", "width"), [("light", 1280), ("dark", 1280), ("dark", 390)])
def test_how_it_looks(open_page, as_researcher, filled, process, theme, width):
    page = open_page(as_researcher, color_scheme=theme, reduced_motion="reduce")
    page.set_viewport_size({"width": width, "height": 800})
    page.goto(f"/runs/{filled.id}/rollouts?step=all")
    page.wait_for_selector('#connection[data-state="live"]', state="attached")
    page.locator(".group").first.wait_for()
    trainer = process(filled)
    trainer.post(trainer.event("rollouts", 70, rollouts=[rollout(filled, 70, 0, 0).content]))
    page.get_by_role("button", name="1 new step").wait_for()
    page.evaluate(AXE.read_text())
    assert layout_faults(page) == []
    if width > 400:
        assert page.evaluate(LOOK) == []
    if folder := os.environ.get("TOUCHSTONE_LOOK"):
        page.screenshot(path=f"{folder}/window-{theme}-{width}.png")
