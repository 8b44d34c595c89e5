"""Tokens are tinted by the values that the run recorded: the scale, missing values, and the value of a token by pointer and keyboard."""

import os

import pytest
from playwright.sync_api import expect

from tests.e2e.look import layout_faults
from tests.e2e.test_accessibility import AXE, LOOK
from tests.e2e.test_run_page import run  # noqa: F401 - a fixture

pytestmark = pytest.mark.browser

TOKENS = ["The", " sky", " is", " blue", " today"]


def response(index: int, advantage: float | None = 0.5, **fields) -> dict:
    plain = {"example_key": "sky", "group": 0, "index": index, "prompt": "What colour is the sky?"}
    plain |= {"response": "".join(TOKENS), "finish_reason": "stop", "reward": 0.5, "advantage": advantage}
    recorded = {"tokens": TOKENS, "logprobs": [-0.1] * 5, "ratios": [1.0] * 5, "mask": [1.0, 1.0, 1.0, 1.0, 0.0]}
    parts = [{"name": "judge", "kind": "judge", "value": index / 4}]
    return plain | recorded | {"parts": parts} | fields


@pytest.fixture
def recorded(run, process):  # noqa: F811
    """Responses with entropies, with advantages of the tokens, of a version that recorded no entropies, and without tokens (left out)."""
    trainer = process(run)
    rows = [
        response(0, entropies=[0.01, 0.3, 0.75, 1.5, 3.0]),
        response(1, entropies=[0.02] * 5, advantages=[-2.0, -0.5, 0.0, 0.5, 2.0]),
        response(2, -1.25),
        response(3, None, tokens=[], logprobs=[], ratios=[], mask=[], parts=[], excluded="no verdict"),
    ]
    trainer.post(trainer.event("rollouts", 1, rollouts=rows))
    return run


def tinted(page, kind: str):
    """The bins of the tokens of each response."""
    page.locator("#tint").select_option(kind)
    css = "part" if kind.startswith("part:") else kind
    found = page.locator(".response").all()
    return [
        [each.get_attribute("class").removeprefix(f"t-{css} b") for each in card.locator(f".t-{css}").all()]
        for card in found
    ]


def test_entropy_says_where_it_was_not_recorded(open_page, as_researcher, recorded):
    page = open_page(as_researcher)
    page.goto(f"/runs/{recorded.id}/rollouts")
    page.locator(".response").nth(3).wait_for()
    assert tinted(page, "entropy") == [["0", "1", "2", "3", "4"], ["0"] * 5, [], []]
    legend = page.locator("#tint-legend")
    expect(legend).to_contain_text("below 0.1 nats")
    expect(legend).to_contain_text("2 and more")
    expect(legend).to_contain_text("recorded for 2 of 4 responses")
    expect(page.locator(".response").nth(2)).to_contain_text("(not recorded for this response)")


def test_advantage_is_of_each_token_where_the_objective_gives_it(open_page, as_researcher, recorded):
    page = open_page(as_researcher)
    page.goto(f"/runs/{recorded.id}/rollouts?tint=advantage")
    page.locator(".response").nth(3).wait_for()
    off = "off"  # the last token is not in the loss
    assert tinted(page, "advantage") == [["u1"] * 4 + [off], ["d2", "d1", "0", "u1", off], ["d2"] * 4 + [off], []]
    last = page.locator(".response").nth(1).locator("[data-token]").last
    expect(last).to_have_attribute("title", "not in the loss")


def test_a_part_of_the_reward_has_the_scale_of_the_page(open_page, as_researcher, recorded):
    page = open_page(as_researcher)
    page.goto(f"/runs/{recorded.id}/rollouts")
    page.locator(".response").nth(3).wait_for()
    assert tinted(page, "part:judge") == [["0"] * 5, ["2"] * 5, ["4"] * 5, []]
    legend = page.locator("#tint-legend")
    expect(legend).to_contain_text("0 to 0.100")
    expect(legend).to_contain_text("0.400 to 0.500")
    expect(legend).to_contain_text("one value for the whole response")
    page.reload()  # the address holds it
    expect(page.locator("#tint")).to_have_value("part:judge")


def test_a_tint_that_no_response_has_shows_no_scale(open_page, as_researcher, run, process):  # noqa: F811
    trainer = process(run)
    trainer.post(trainer.event("rollouts", 1, rollouts=[response(0)]))
    page = open_page(as_researcher)
    page.goto(f"/runs/{run.id}/rollouts?tint=entropy")
    expect(page.locator("#tint-legend")).to_have_text("not recorded for any response here")
    expect(page.locator(".t-entropy")).to_have_count(0)
    page.goto(f"/runs/{run.id}/rollouts?tint=nonsense")
    expect(page.locator("#tint")).to_have_value("")


def test_the_value_of_a_token_is_said_under_the_pointer_and_with_the_arrow_keys(open_page, as_researcher, recorded):
    page = open_page(as_researcher)
    page.goto(f"/runs/{recorded.id}/rollouts?tint=entropy")
    first = page.locator(".response").first
    told = first.locator(".token-told")
    first.locator("[data-token='1']").hover()
    expect(told).to_have_text("Token 2 of 5, “ sky”: entropy 0.3 nats")
    text = first.locator(".response-text")
    text.focus()
    page.keyboard.press("End")
    expect(told).to_have_text("Token 5 of 5, “ today”: entropy 3 nats")
    page.keyboard.press("ArrowLeft")
    expect(told).to_have_text("Token 4 of 5, “ blue”: entropy 1.5 nats")
    page.keyboard.press("ArrowRight")
    page.keyboard.press("ArrowRight")  # this is the last token
    expect(told).to_have_text("Token 5 of 5, “ today”: entropy 3 nats")


@pytest.mark.parametrize("theme", ["light", "dark"])
def test_tints_can_be_read_in_both_themes(open_page, as_researcher, recorded, theme):
    page = open_page(as_researcher, color_scheme=theme, reduced_motion="reduce")
    page.goto(f"/runs/{recorded.id}/rollouts")
    page.locator(".response").nth(3).wait_for()
    page.evaluate(AXE.read_text())
    for kind in ("logprob", "ratio", "mask", "entropy", "advantage", "part:judge"):
        tinted(page, kind)
        assert page.evaluate(LOOK) + layout_faults(page) == [], kind
        if folder := os.environ.get("TOUCHSTONE_LOOK"):
            page.screenshot(path=f"{folder}/tint-{kind.replace(':', '-')}-{theme}.png", full_page=True)
