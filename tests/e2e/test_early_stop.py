"""“Stop early” in a browser: in the menu of a run and on the form that launches one, by keyboard, in both themes."""

import pytest
from playwright.sync_api import expect

from tests.e2e.look import on_screens, unfold
from tests.e2e.test_run_page import run  # noqa: F401 - a fixture
from webapp.experiments.models import Run

pytestmark = pytest.mark.browser
WORDS = "Stops early if Held-out rubric score (eval/rubric_score) does not improve by more than 0.001 in 5 evaluations"


def test_a_rule_is_set_in_the_menu_of_a_run_and_taken_away(open_page, as_researcher, run):  # noqa: F811
    page = open_page(as_researcher)
    page.goto(f"/runs/{run.id}")

    def ask(**typed):
        page.locator("summary[aria-label='More']").press("Enter")
        page.get_by_role("button", name="Stop early…").press("Enter")
        dialog = page.get_by_role("dialog")
        dialog.get_by_label("Stop early by").select_option(typed.pop("metric"))
        for label, text in typed.items():
            dialog.get_by_label(label.capitalize()).fill(text)
        on_screens(page, "early-dialog")
        dialog.get_by_role("button", name="Set").press("Enter")

    ask(metric="eval/rubric_score", patience="5", least="0.001")
    expect(page.get_by_text(WORDS)).to_be_visible()
    ask(metric="")
    expect(page.get_by_text("Stops early if")).to_have_count(0)
    assert Run.objects.get(id=run.id).stop_early is None


def test_the_form_says_what_is_wrong_and_launches_with_the_rule(open_page, as_researcher, run):  # noqa: F811
    page = open_page(as_researcher)
    page.goto(f"/runs/{run.id}/fork")
    unfold(page, "f-early_metric").select_option("eval/rubric_score")
    page.get_by_label("Patience").fill("soon")
    page.get_by_role("button", name="Launch run").press("Enter")
    expect(page.locator("#fh-early_patience")).to_contain_text("whole number")
    on_screens(page, "early-form")
    page.get_by_label("Patience").fill("5")
    page.get_by_role("button", name="Launch run").press("Enter")
    page.wait_for_url(lambda url: "/fork" not in url)
    assert Run.objects.latest("id").stop_early["patience"] == 5
