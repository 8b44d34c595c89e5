"""A written rubric is shown beside the rubric of people, and each criterion says whether the other rubric has it."""

import pytest
from playwright.sync_api import expect

from tests.e2e.test_run_page import run  # noqa: F401 - a fixture
from trainer.config import RECIPES, resolve
from webapp.experiments.models import Run

pytestmark = pytest.mark.browser

SAID = {"points": 5.0, "kind": "hard", "importance": "essential"}
BOTH = {
    "written": [{"text": "Names the source", **SAID}, {"text": "Sounds sure of itself", **SAID, "points": -2.0}],
    "human": [{"text": "Says where it comes from", **SAID}, {"text": "Has at most 50 words", **SAID}],
    "matches": [[0, 0]],
}


def response(index: int, shown: dict) -> dict:
    parts = [
        {"name": "preference", "kind": "rubric_preference", "value": 1.0, "why": "the preferred answer scores above"},
        {"name": "format", "kind": "rubric_form", "value": 0.0, "shown": {"problems": [], "criteria": 2}},
        {"name": "recall", "kind": "rubric_recall", "value": 0.5, "shadow": True, "shown": shown},
    ]
    plain = {"example_key": "e · a/b", "group": 0, "index": index, "prompt": "Write the rubric.", "response": "[...]"}
    return plain | {"finish_reason": "stop", "reward": 1.0, "parts": parts}


@pytest.fixture
def rubric_writer_run(run, process):  # noqa: F811
    config = resolve("rubric_writer", dict(RECIPES["rubric_writer"].example)).model_dump(mode="json")
    config["model"]["name"] = run.config["model"]["name"]
    Run.objects.filter(pk=run.pk).update(recipe="rubric_writer", config=config)
    trainer = process(run)
    alone, unread = {**BOTH, "human": [], "matches": []}, {**BOTH, "written": [], "matches": []}
    rows = [response(place, shown) for place, shown in enumerate((BOTH, alone, unread))]
    trainer.post(trainer.event("rollouts", 1, rollouts=rows))
    return run


def test_two_rubrics_stand_side_by_side_and_what_differs_is_marked(open_page, as_researcher, rubric_writer_run):
    page = open_page(as_researcher)
    page.goto(f"/runs/{rubric_writer_run.id}/rollouts?step=1")
    expect(page.locator("#formula")).to_have_text("reward = preference + format; measured only: recall")
    sides = page.locator(".response").first.locator(".rubric-side")
    expect(sides.locator("h4")).to_have_text(["Written rubric", "Rubric of people"])
    expect(sides.first.locator(".criterion-word")).to_have_text(["people have it too", "people do not have it"])
    expect(sides.last.locator(".criterion-word")).to_have_text(["written too", "not written"])
    expect(sides.first.locator(".criterion-points")).to_have_text(["+5", "−2"])
    second, third = (page.locator(".response").nth(place).locator(".rubric-side") for place in (1, 2))
    expect(second).to_have_count(1)
    expect(third.first).to_contain_text("No criterion could be read.")
    expect(third.last.locator(".criterion-word")).to_have_text(["not written", "not written"])
