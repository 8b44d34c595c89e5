"""Prompts and responses of a run as people read them: with tables, code and formulas, in every script, or as they were written."""

import re

import pytest
from playwright.sync_api import expect

from tests.e2e.look import layout_faults, on_screens
from tests.e2e.test_accessibility import AXE, LOOK
from tests.e2e.test_run_page import run  # noqa: F401 - a fixture

pytestmark = pytest.mark.browser

PROMPT = r"Show that $\sum_{k=1}^n k = \frac{n(n+1)}{2}$, with a **table**."
TEXTS = (
    "By induction:\n\n$$\\int_0^1 x^2\\,dx = \\tfrac13$$\n\n| n | sum |\n|---|---|\n| 1 | 1 |\n\n```python\nprint(1)\n```\n",
    "# A heading\n\n<script>alert(1)</script> and [a link](javascript:alert(1))",
    "1. اكتب ثلاث جمل قصيرة\n2. عن البحر\n\nAnd then in English.",
    "- 天空为什么是蓝色的\n- 因为散射",
)


@pytest.fixture
def sampled(run, process):  # noqa: F811
    trainer = process(run)
    rows = [
        {"example_key": "sum", "group": 0, "index": index, "prompt": PROMPT, "response": text, "finish_reason": "stop"}
        | {"reward": 0.5, "advantage": 0.0, "tokens": [text], "logprobs": [-0.1], "ratios": [1.0], "mask": [1.0]}
        for index, text in enumerate(TEXTS)
    ]
    trainer.post(trainer.event("rollouts", 1, rollouts=rows))
    return run


def test_texts_are_shown_formatted_and_as_they_were_written(open_page, as_researcher, sampled):
    page = open_page(as_researcher)
    page.goto(f"/runs/{sampled.id}/rollouts")
    first, second, arabic, chinese = (page.locator(".response").nth(i).locator(".response-text") for i in range(4))
    expect(first).to_contain_text("```python")
    expect(page.locator(".katex")).to_have_count(0)

    page.locator("body").press("f")
    expect(page.get_by_role("button", name="Formatted")).to_have_attribute("aria-pressed", "true")
    expect(page.locator(".prompt-text .katex")).to_be_visible()
    expect(page.locator(".prompt-text strong")).to_have_text("table")
    expect(first.locator(".katex-display")).to_be_visible()
    expect(first.locator("table td")).to_have_text(["1", "1"])
    expect(first.locator("pre")).to_have_text("print(1)\n")
    expect(second).to_contain_text("<script>alert(1)</script>")
    expect(second.locator("a")).to_have_count(0)
    expect(arabic.locator("li").first).to_have_css("direction", "rtl")
    expect(arabic.locator("p").last).to_have_css("direction", "ltr")
    expect(chinese.locator("li")).to_have_text(["天空为什么是蓝色的", "因为散射"])
    on_screens(page, "rollouts-formatted")
    if AXE.exists():
        page.evaluate(AXE.read_text())
        assert page.evaluate(LOOK) == []

    page.locator("#tint").select_option("logprob")  # tokens have their own text
    expect(first.locator(".t-logprob")).to_have_count(1)
    expect(page.locator(".prompt-text .katex")).to_be_visible()
    page.locator("#tint").select_option("")
    page.reload()  # the address holds it
    expect(first.locator("pre")).to_be_visible()
    page.get_by_role("button", name="Formatted").click()
    expect(first).to_contain_text("```python")
    expect(page).not_to_have_url(re.compile("formatted"))
    assert layout_faults(page) == []
