"""From a score that people should correct to the tasks of these people, and back to the score, on pages alone."""

import os

import pytest
from playwright.sync_api import expect

from tests.e2e.test_accessibility import AXE, in_both_themes
from tests.webapp.evaluation.judged_scores import answer_all_tasks, first_model_cells, make_judged_evaluation
from webapp.annotation.models import Project
from webapp.evaluation.models import Evaluation

pytestmark = pytest.mark.browser


def look(page, name: str) -> None:
    """The faults of this part and of the whole page, in both themes."""
    if folder := os.environ.get("TOUCHSTONE_LOOK"):
        for theme in ("light", "dark"):
            page.emulate_media(color_scheme=theme)
            page.screenshot(path=f"{folder}/{name}-{theme}.png", full_page=True)


def test_tasks_are_made_graded_and_published_and_the_score_is_corrected(open_page, eager, as_researcher, server, team):
    row = make_judged_evaluation(team.researcher)
    address = f"/evaluations/{row.pk}"
    page, other = open_page(as_researcher), open_page(as_researcher)
    assert AXE.exists() and not in_both_themes(page, address)
    look(page, "to-make")
    other.goto(address)  # another tab that still offers the button
    place = page.locator("#grade-next")
    place.get_by_label("People per response").fill("0")
    place.get_by_role("button", name="Create annotation tasks").click()
    expect(place.get_by_role("alert")).to_contain_text("People per response must be between 1 and")
    look(page, "refused")
    place.get_by_label("People per response").fill("1")
    place.get_by_role("button", name="Create annotation tasks").click()
    expect(place).to_contain_text("0 of 20 responses are graded")
    other.locator("#grade-next").get_by_role("button", name="Create annotation tasks").click()
    expect(other.locator("#grade-next")).to_contain_text("0 of 20 responses are graded")
    project = Project.objects.get()

    answer_all_tasks(team.researcher, project)
    assert not in_both_themes(page, address)
    expect(place).to_contain_text("20 of 20 responses are graded")
    look(page, "graded")
    place.get_by_role("link", name="Answers").click()
    expect(page.get_by_label("Each answer by itself")).to_be_checked()
    page.get_by_role("button", name="Publish a frozen version").click()
    page.get_by_role("heading", name="Published as version 2").wait_for()
    page.goto(address)
    look(page, "published")
    place.get_by_role("button", name="Correct the score with these grades").click()
    page.wait_for_url(lambda url: "/evaluations/" in url and not url.endswith(address))
    latest = Evaluation.objects.latest("id")
    assert (latest.rerun_of_id, latest.state) == (row.pk, "finished")
    more = first_model_cells(latest)["To grade next"]["value"]
    expect(place).to_contain_text(f"{more} responses to {more} prompts, drawn at random, for an interval of ± 15.0%")
    assert not in_both_themes(page, f"/evaluations/{latest.pk}")
    look(page, "corrected")
