"""The run's page shows what a judge said of a response, and finds responses on which the parts of the reward disagree."""

import pytest
from playwright.sync_api import expect

from tests.e2e.test_run_page import run  # noqa: F401 - a fixture
from webapp.experiments.models import Run

pytestmark = pytest.mark.browser

WORDS = [
    "The sum $\\sum_{i=1}^{n} i = \\frac{n(n+1)}{2}$ is **right**, and so is the code:\n\n```python\nprint(sum(range(10)))\n```",
    "回答列出了三个要点，每个要点都有说明，但是最后一句与问题无关。" * 8,
    "الإجابة صحيحة لكنها أطول مما طُلب، ولا تذكر المصدر.",
    "It repeats itself. " * 400,
]


def response(index: int, verifier: float, judge: float | None, **fields) -> dict:
    """One response of a group, with the results of its verifier and its judge."""
    verdict = {
        "criterion_id": "c1",
        "met": None if judge is None else bool(judge),
        "source": "judge",
        "note": WORDS[index],
        "cost": 0.002,
    }
    why = "" if judge is not None else "the endpoint answered nothing"
    parts = [
        {"name": "verifier", "kind": "verifier", "value": verifier},
        {"name": "judge", "kind": "judge", "value": judge, "why": why, "calls": 2, "tokens": 640, "cost": 0.004},
        {"name": "tone", "kind": "judge", "value": 0.5, "shadow": True, "why": "polite", "shown": {"answers": [
            {"order": "", "parsed": {"rating": 5, "explanation": "Polite enough."}, "problem": "", "raw": ""}
        ]}},
    ]  # fmt: skip
    plain = {
        "example_key": "e0",
        "group": 0,
        "index": index,
        "prompt": "Add up the numbers.",
        "response": f"Answer {index}",
    }
    criteria = [{"text": "Explains $n^2$", "points": 3, "kind": "principle", "verdict": verdict}]
    criteria.append(
        {"text": "Under 40 words", "points": 2, "kind": "hard", "verdict": {"criterion_id": "c2", "met": True}}
    )
    return plain | {"finish_reason": "stop", "reward": verifier, "criteria": criteria, "parts": parts} | fields


@pytest.fixture
def run_with_parts(run, process):  # noqa: F811
    """Two steps. In the first, verifier and judge disagree on responses 0 and 1. In the second they agree."""
    rewards = [
        {"kind": "verifier", "name": "verifier", "weight": 0.5},
        {"kind": "judge", "name": "judge", "weight": 1, "judge": "Grader v1"},
    ]
    Run.objects.filter(pk=run.pk).update(config={**run.config, "rewards": [*rewards, {"name": "tone", "shadow": True}]})
    trainer = process(run)
    apart = [
        response(0, 1.0, 0.0),
        response(1, 0.0, 1.0),
        response(2, 0.5, 0.5),
        response(3, 1.0, None, excluded="judge: the endpoint answered nothing", reward=None),
    ]
    alike = [response(index, index / 2, index / 2) for index in range(3)]
    trainer.post(trainer.event("rollouts", 1, rollouts=apart), trainer.event("rollouts", 2, rollouts=alike))
    return run


def test_a_response_tells_what_every_part_and_every_judge_said(open_page, as_researcher, run_with_parts):
    page = open_page(as_researcher)
    page.goto(f"/runs/{run_with_parts.id}/rollouts?step=1")
    first = page.locator(".response").first
    expect(first.locator(".part-name")).to_have_text(["verifier", "judge", "tone"])
    expect(first.locator(".part-value")).to_have_text(["1.000", "0.000", "0.500"])
    expect(first.locator(".part").first).to_contain_text("× 0.5")
    expect(first.locator(".part").nth(1)).to_contain_text("Grader v1")
    expect(first.locator(".part").nth(2)).to_contain_text("measured only")
    expect(page.locator("#formula")).to_have_text("reward = 0.5 × verifier + judge; measured only: tone")
    expect(first.locator(".criterion-source").nth(0)).to_contain_text("decided by the judge, cost 0.002")
    expect(first.locator(".criterion-source").nth(1)).to_contain_text("decided by a program")
    expect(first.locator(".criterion .katex").nth(1)).to_be_visible()
    expect(first.locator(".criterion pre")).to_have_text("print(sum(range(10)))\n")
    expect(first).to_contain_text("2 calls to judges · 640 tokens · cost 0.004")
    first.get_by_text("Full answer").click()
    expect(first.get_by_text("Polite enough.")).to_be_visible()
    expect(page.locator(".response").nth(3).locator(".part").nth(1)).to_contain_text("no value")
    expect(page.locator(".excluded").nth(3)).to_contain_text("judge: the endpoint answered nothing")

    chinese, arabic, long = (page.locator(".response").nth(i).locator(".criterion-note") for i in (1, 2, 3))
    expect(chinese).to_contain_text("与问题无关")
    expect(arabic).to_have_css("direction", "rtl")
    assert long.bounding_box()["height"] < 250
    assert page.evaluate("document.documentElement.scrollWidth <= innerWidth")


def test_disagreement_of_two_parts_finds_responses_in_all_steps_and_stays_in_the_address(
    open_page, as_researcher, run_with_parts
):
    page = open_page(as_researcher)
    page.goto(f"/runs/{run_with_parts.id}/rollouts")
    page.locator(".response").nth(2).wait_for()
    page.get_by_text("Filter by parts of the reward").click()
    page.locator("#first").select_option("verifier")
    page.locator("#second").select_option("judge")
    page.get_by_text("No response of this step fits the filter").wait_for()
    page.locator("#all-steps").click()
    expect(page.locator(".response-text")).to_have_text(["Answer 1", "Answer 0"])
    expect(page.locator(".group h3")).to_have_text("Step 1 · Prompt 1")
    expect(page.locator("#sort")).to_have_value("-apart")
    assert "between=verifier%2Cjudge" in page.url

    page.reload()
    expect(page.locator(".response-text")).to_have_text(["Answer 1", "Answer 0"])
    page.locator("#measure").select_option("value")
    page.locator("#apart").fill("2")
    page.keyboard.press("Enter")
    page.get_by_text("No response of this run fits the filter").wait_for()
    page.locator("#no-filters").click()
    page.locator("#excluded").select_option("true")
    expect(page.locator(".response-text")).to_have_text(["Answer 3"])
    page.locator("#excluded").select_option("")
    page.locator("#part").select_option("judge")
    page.locator("#low").fill("0.9")
    page.keyboard.press("Enter")
    expect(page.locator(".response-text")).to_have_text(["Answer 2", "Answer 1"])
