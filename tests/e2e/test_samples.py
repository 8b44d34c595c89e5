"""Pairs and texts of a run, each in a viewer for their kind, sent with the events that every run sends."""

import pytest
from playwright.sync_api import expect

from tests.e2e.test_run_page import run  # noqa: F401 - a fixture
from trainer.contracts.pairs import compared
from webapp.experiments.models import Run

pytestmark = pytest.mark.browser


def side(group: int, index: int, chosen: float, rejected: float, text: str) -> dict:
    """One answer of a held-out pair."""
    place = {"phase": "eval", "example_key": f"e{group}", "group": group, "index": index, "prompt": "Which?"}
    facts = {"domain": "math", "strength": 2, "votes": "3 for, 1 against"}
    numbers = {"components": compared(chosen, rejected) | {"votes": 1}, "reward": (chosen, rejected)[index]}
    return place | numbers | {"response": text, "finish_reason": "stop", "facts": facts}


def test_pairs_stand_side_by_side_and_wrong_ones_are_found(open_page, as_researcher, run, process):  # noqa: F811
    Run.objects.filter(pk=run.pk).update(recipe="reward_model")
    trainer = process(run)
    scores = [(2.0, 0.5), (-1.0, 2.0), (0.1, 0.2), (1.0, 1.0)]
    texts = ("better", "$x^2$ 更好 " * 3)
    pairs = [side(group, i, *pair, f"{texts[i]} {group}") for group, pair in enumerate(scores) for i in range(2)]
    trainer.post(trainer.event("rollouts", 1, rollouts=pairs))
    page = open_page(as_researcher)
    page.goto(f"/runs/{run.id}/rollouts")
    expect(page.locator(".pair-verdict")).to_have_count(4)
    first = page.locator(".pair").first
    expect(first.locator("h4")).to_have_text(["Preferred", "Rejected"])
    expect(first).to_contain_text("margin +1.500 · sure by 81.8%")
    expect(first).to_contain_text("domain math · strength 2 · votes 3 for, 1 against")
    left, right = (first.locator(".response").nth(i).bounding_box() for i in range(2))
    assert left["y"] == right["y"]
    assert left["x"] < right["x"]

    page.get_by_label("Only wrong ones").check()
    expect(page.locator(".group h3")).to_have_text(["Prompt 2", "Prompt 3"])
    page.locator("#sort").select_option("confidence:-part")
    expect(page.locator(".pair-head .num").first).to_have_text("margin −3.000 · sure by 95.3%")
    page.locator("#sort").select_option("confidence:part")
    expect(page.locator(".pair-head .num").first).to_have_text("margin −0.100 · sure by 52.5%")
    page.reload()  # the address holds it
    expect(page.locator(".group h3")).to_have_text(["Prompt 3", "Prompt 2"])
    expect(page.locator("#rollout-count")).to_have_text("2 pairs")


def test_a_text_marks_what_is_learnt_and_tells_the_loss_of_each_token(open_page, as_researcher, run, process):  # noqa: F811
    Run.objects.filter(pk=run.pk).update(recipe="sft")
    trainer = process(run)

    def text(group: int, loss: float) -> dict:
        tokens = {"tokens": ["Yes", " user", " no"], "logprobs": [-loss, 0.0, -0.01], "mask": [1.0, 0.0, 1.0]}
        place = {"phase": "eval", "example_key": f"e{group}", "group": group, "index": 0, "prompt": "Well?"}
        more = {"response": "Yes user no", "finish_reason": "stop", "components": {"loss": loss / 2 + 0.005}}
        return place | tokens | more | {"facts": {"learnt tokens": 2}}

    trainer.post(trainer.event("rollouts", 1, rollouts=[text(0, 1.0), text(1, 4.0)]))
    page = open_page(as_researcher)
    page.goto(f"/runs/{run.id}/rollouts")
    expect(page.locator(".response-text .t-loss")).to_have_count(6)
    expect(page.locator(".response-text .t-loss").nth(0)).to_have_attribute("title", "loss 1, probability 0.36787944")
    expect(page.locator(".response-text .t-loss").nth(1)).to_have_attribute("title", "not learnt")
    expect(page.locator(".pair-head").first).to_contain_text("loss 0.505 per learnt token")
    page.locator("#sort").select_option("loss:-part")
    expect(page.locator(".group h3")).to_have_text(["Prompt 2", "Prompt 1"])
    expect(page.locator("#rollout-count")).to_have_text("2 texts")
