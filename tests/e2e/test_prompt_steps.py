"""One prompt through training: from its rollouts to two steps side by side, by keyboard alone."""

import os

import pytest
from playwright.sync_api import expect

from tests.e2e.look import layout_faults
from tests.e2e.seed import seed_run
from tests.e2e.test_run_page import run  # noqa: F401 - a fixture

pytestmark = pytest.mark.browser

ANSWERS = {
    1: ["The sky is red today", "I do not know"],
    2: ["The sky is blue today", "It is blue"],
    5: ["The sky is blue, and clear", "Blue"],
}


def response(index: int, text: str, reward: float, **fields) -> dict:
    plain = {"example_key": "sky", "group": 0, "index": index, "prompt": "What colour is the sky?", "response": text}
    tokens = text.split()
    recorded = {"tokens": tokens, "logprobs": [-0.1] * len(tokens)}
    return plain | recorded | {"finish_reason": "stop", "reward": reward} | fields


@pytest.fixture
def answered(run, process):  # noqa: F811
    """A prompt at three steps, two responses each, and another prompt at step 2."""
    trainer = process(run)
    for step, texts in ANSWERS.items():
        rows = [response(index, text, step / 10 + index / 5) for index, text in enumerate(texts)]
        if step == 2:
            rows.append(response(0, "Green", 0.0, example_key="sea", group=1, prompt="And the sea?"))
        trainer.post(trainer.event("rollouts", step, rollouts=rows))
    return run


def test_from_a_rollout_to_the_same_prompt_at_every_step(open_page, as_researcher, answered):
    page = open_page(as_researcher)
    page.goto(f"/runs/{answered.id}/rollouts?step=2")
    first = page.locator(".group").first
    expect(first.get_by_role("link", name="Through training")).to_be_visible()
    page.locator(".group").nth(1).wait_for()
    page.keyboard.press("j")
    page.keyboard.press("t")
    page.wait_for_url("**/prompt?key=sky**")
    expect(page.locator("#prompt-text")).to_have_text("What colour is the sky?")
    expect(page.locator("#left h3")).to_have_text("Step 1")
    expect(page.locator("#right h3")).to_have_text("Step 2")
    expect(page.locator("#rows tr")).to_have_count(3)
    expect(page.locator("#rows tr").first).to_contain_text("0.600")  # the mean of 0.5 and 0.7
    expect(page.locator("#left del")).to_have_text("red ")
    expect(page.locator("#right ins")).to_have_text("blue ")

    page.keyboard.press(".")
    expect(page.locator("#right h3")).to_have_text("Step 5")
    expect(page.get_by_role("button", name="Later step")).to_be_disabled()
    page.keyboard.press(">")
    expect(page.locator("#left h3")).to_have_text("Step 2")
    page.keyboard.press("j")
    expect(page.locator("#right .response-text")).to_have_text("Blue")
    assert "step=5" in page.url and "beside=2" in page.url and "response=2" in page.url
    page.reload()  # the address holds the view
    expect(page.locator("#left .response-text")).to_have_text("It is blue")
    page.keyboard.press("d")
    expect(page.locator(".word-diff")).to_have_count(0)
    page.get_by_role("button", name="All", exact=True).click()
    expect(page.locator("#right .response")).to_have_count(2)


def test_a_step_is_chosen_on_the_curve_with_the_arrow_keys(open_page, as_researcher, answered):
    page = open_page(as_researcher)
    page.goto(f"/runs/{answered.id}/prompt?key=sky")
    curve = page.get_by_role("slider", name="Reward: step")
    expect(curve).to_have_attribute("aria-valuenow", "5")
    curve.focus()
    page.keyboard.press("ArrowLeft")
    expect(curve).to_have_attribute("aria-valuenow", "2")
    expect(curve).to_have_attribute("aria-valuetext", "step 2: 0.300 ± 0.141, 0.200 to 0.400, 2 responses")
    expect(page.locator("#right h3")).to_have_text("Step 2")
    page.keyboard.press("Home")
    expect(page.locator("#right h3")).to_have_text("Step 1")


def test_a_prompt_that_was_not_sampled_says_so(open_page, as_researcher, answered):
    page = open_page(as_researcher)
    page.goto(f"/runs/{answered.id}/prompt?key=nobody")
    expect(page.get_by_text("This prompt was not sampled in this phase.")).to_be_visible()
    expect(page.locator("#steps")).to_be_hidden()


@pytest.mark.parametrize("theme", ["light", "dark"])
def test_how_it_looks(open_page, as_researcher, run, theme):  # noqa: F811
    seed_run(run, steps=40)
    page = open_page(as_researcher, color_scheme=theme)
    for size, name in (({"width": 1440, "height": 1300}, "wide"), ({"width": 390, "height": 844}, "phone")):
        page.set_viewport_size(size)
        page.goto(f"/runs/{run.id}/prompt?key=demo-001")
        page.locator("#right .response").wait_for()
        assert layout_faults(page) == []
        if folder := os.environ.get("TOUCHSTONE_LOOK"):
            page.screenshot(path=f"{folder}/prompt-{name}-{theme}.png", full_page=True)
