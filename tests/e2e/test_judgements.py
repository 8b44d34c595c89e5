"""Judgements of pairs on a run's page: verdict and reasons beside those of people, and which reason was matched with which."""

from typing import Any

import pytest
from playwright.sync_api import expect

from tests.e2e.look import picture
from tests.e2e.test_run_page import run  # noqa: F401 - a fixture
from trainer.config import resolve
from webapp.experiments.models import Run

pytestmark = pytest.mark.browser

HUMAN = ["Names the minutes.", "Says when to start counting."]
GIVEN = ["A names nine minutes.", "B is more polite."]
FLAWS = {
    "reasons": GIVEN,
    "by": "Tagger v1",
    "tags": [{"rests_on": "evidence", "flaws": []}, {"rests_on": "generic", "flaws": ["F2", "F4"]}],
}


def judgement(index: int, verdict: int | None, ap: float) -> dict:
    shown: dict[str, Any] = {
        "human": HUMAN,
        "reasons": GIVEN,
        "matcher": "embeddings",
        "scores": [[0.81, 0.12], [0.3, 0.05]],
    }
    shown |= {"human_of": [0, 1], "hits": [True, False], "rc": 0.43}
    parts = [
        {
            "name": "outcome",
            "kind": "outcome",
            "value": float(verdict == -1),
            "shown": {"verdict": verdict, "label": -1},
        },
        {"name": "rationale", "kind": "rationale", "value": ap, "shown": shown},
        {"name": "flaws", "kind": "flaws", "value": 0.5, "shadow": True, "shown": FLAWS},
        {"name": "form", "kind": "well_formed", "value": 1.0, "shadow": True},
    ]
    plain = {"example_key": "e0 · a/b · given", "group": 0, "index": index, "prompt": "Which is better?"}
    return plain | {"response": "- A names nine minutes.", "finish_reason": "stop", "reward": ap, "parts": parts}


@pytest.fixture
def judging(run):  # noqa: F811
    config = resolve("judge", {"data": {"form": "lines"}}).model_dump(mode="json")
    Run.objects.filter(pk=run.pk).update(recipe="judge", config=config)
    run.refresh_from_db()
    return run


@pytest.fixture
def run_with_judgements(judging, process):
    trainer = process(judging)
    trainer.post(trainer.event("rollouts", 1, rollouts=[judgement(0, -1, 0.5), judgement(1, None, 0.0)]))
    return judging


def test_reasons_stand_beside_peoples_with_the_matching_as_a_grid(open_page, as_researcher, run_with_judgements):
    page = open_page(as_researcher)
    page.goto(f"/runs/{run_with_judgements.id}/rollouts?step=1")
    first, second = page.locator(".response").nth(0), page.locator(".response").nth(1)
    expect(page.locator("#formula")).to_have_text("reward = outcome * rationale; measured only: form")
    expect(page.locator("#rollout-count")).to_have_text("2 responses to 1 prompt")
    expect(first.locator(".judged-mark")).to_have_text("A better")
    expect(first.locator(".judged")).to_contain_text("people prefer A")
    expect(second.locator(".judged")).to_contain_text("no verdict that can be read")
    expect(first.locator(".matching-sides li").first).to_contain_text("Names the minutes.")
    expect(first.locator(".matching-grid .is-hit")).to_have_text(["0.81"])
    expect(first.locator(".matching").first).to_contain_text("consistency 0.430")
    expect(first.locator(".tagged li").nth(0)).to_contain_text("A names nine minutes. rests on an answer")
    expect(first.locator(".tagged li").nth(1)).to_contain_text("generic · F2 · F4")
    expect(page.get_by_role("link", name="Judgements")).to_be_visible()
    for scheme in ("light", "dark"):
        page.emulate_media(color_scheme=scheme)
        picture(page, f"judgements-{scheme}", full_page=True)


def test_consistency_is_drawn_against_accuracy_step_by_step(open_page, as_researcher, judging, process):
    trainer = process(judging)
    for step, accuracy, rc in ((2, 0.5, 0.4), (4, 0.6, 0.45), (6, 0.75, 0.3)):
        values = {"eval/accuracy": accuracy, "eval/rc": rc}
        values |= {
            f"eval/{key}_{end}": value + way
            for key, value in (("accuracy", accuracy), ("rc", rc))
            for end, way in (("low", -0.1), ("high", 0.1))
        }
        trainer.post(trainer.event("metrics", step, values=values))
    page = open_page(as_researcher)
    page.goto(f"/runs/{judging.id}")
    chart = page.locator("#chart-right-and-for-the-right-reasons")
    expect(chart.locator(".trace-point")).to_have_count(3)
    expect(chart.locator(".trace-interval")).to_have_count(2)
    chart.locator(".trace").focus()
    for key, words in (("ArrowRight", "Step 2: Held-out accuracy 50%"), ("End", "Step 6:"), ("ArrowLeft", "Step 4:")):
        page.keyboard.press(key)
        expect(chart.locator(".chart-foot").first).to_contain_text(words)
    chart.get_by_text("In numbers").click()
    expect(chart.locator("tbody tr")).to_have_count(3)
    expect(chart.locator("tbody tr").nth(2)).to_contain_text("65% to 85%")
    trainer.post(trainer.event("metrics", 8, values={"eval/accuracy": 0.8, "eval/rc": 0.5}))
    expect(chart.locator(".trace-point")).to_have_count(4)
    for scheme in ("light", "dark"):
        page.emulate_media(color_scheme=scheme)
        picture(chart, f"trace-{scheme}")
    page.set_viewport_size({"width": 390, "height": 800})
    chart.scroll_into_view_if_needed()
    picture(chart, "trace-phone")


def test_what_only_looks_like_a_judgement_is_shown_as_it_is(open_page, as_researcher, run, process):  # noqa: F811
    """A user's own rewards may show anything, under any name. Also a reward of one of our kinds may lack the form of a judgement."""
    pair, ragged = {"verdict": 1, "label": -1}, {"human": HUMAN, "reasons": GIVEN, "scores": [[None, "x"], [0.1]]}
    rubrics = {"written": [None], "human": [], "matches": [1]}
    odd: list[tuple[str, Any]] = [
        ("python", found) for found in (pair, ragged, rubrics, {"verdicts": 3, "answers": {}, "ratings": [None]})
    ]
    odd += [("outcome", {"verdict": "A", "label": "A"}), ("outcome", "A"), ("rationale", ragged)]
    odd += [
        ("rubric_recall", rubrics),
        ("rubric_choice", {"answers": [], **pair}),
        ("flaws", {"reasons": GIVEN, "tags": [3]}),
        ("constructor", pair),
    ]
    parts = [{"name": f"p{n}", "kind": kind, "value": 1.0, "shown": shown} for n, (kind, shown) in enumerate(odd)]
    trainer = process(run)
    trainer.post(trainer.event("rollouts", 1, rollouts=[{**judgement(0, -1, 0.5), "parts": parts}]))
    page = open_page(as_researcher)
    page.goto(f"/runs/{run.id}/rollouts?step=1")
    said = page.locator(".response .part details")
    expect(said).to_have_count(len(odd))
    expect(page.locator(".response").locator(".judged, .matching, .rubrics")).to_have_count(0)
    said.nth(2).locator("summary").click()
    expect(said.nth(2)).to_contain_text('"matches"')


def test_a_reviewer_matches_reasons_blind_and_the_page_says_how_far_the_matcher_agrees(
    open_page, as_researcher, run_with_judgements
):
    page = open_page(as_researcher)
    page.goto(f"/runs/{run_with_judgements.id}/reasons")
    expect(page.locator("#reasons")).to_contain_text("not measured yet")
    expect(page.get_by_role("main")).not_to_contain_text("embeddings")
    picture(page, "reasons", full_page=True)
    page.get_by_role("checkbox", name="H1 and R1 say the same").check()
    page.get_by_role("button", name="Save and continue").click()
    expect(page.locator("#reasons")).to_contain_text("of 4 pairs of reasons in 1 judgement")
    page.set_viewport_size({"width": 390, "height": 844})
    page.emulate_media(color_scheme="dark")
    picture(page, "reasons-phone", full_page=True)
    wide = page.evaluate("document.documentElement.scrollWidth")
    assert wide <= 390
    page.set_viewport_size({"width": 1280, "height": 800})
    page.goto(f"/runs/{run_with_judgements.id}")
    expect(page.locator("#reasons")).to_contain_text("It finds 100% of the 1 match that people see")
    picture(page, "reasons-run")
