"""A time limit in a browser: it is set by keyboard and shown immediately. A launch is refused when it is used up."""

from datetime import timedelta

import pytest
from playwright.sync_api import expect

from tests.e2e.look import layout_faults
from tests.e2e.test_run_page import run  # noqa: F401 - a fixture
from webapp.experiments.models import Run

pytestmark = pytest.mark.browser


# Nothing is really sent, because Playwright would wait for the page that comes
SENT_TWICE = """() => {
  const form = document.querySelector("#limit-dialog form");
  const refused = [];
  addEventListener("submit", (event) => refused.push(event.defaultPrevented) && event.preventDefault());
  for (let n = 0; n < 2; n += 1) form.requestSubmit(form.querySelector(".primary"));
  return [refused, form.querySelector(".primary").getAttribute("aria-busy"), form.querySelector("[data-close]").disabled];
}"""


def test_a_form_that_is_being_sent_is_not_sent_again(open_page, as_researcher, run):  # noqa: F811
    """In an earlier version, the dialog's *Cancel* could not be pressed then, and *Set* sent the form again."""
    page = open_page(as_researcher)
    page.goto(f"/runs/{run.id}")
    assert page.evaluate(SENT_TWICE) == [[False, True], "true", False]


def test_a_limit_is_set_shown_and_refused_where_it_is_used(open_page, as_researcher, run):  # noqa: F811
    Run.objects.filter(id=run.id).update(under_way=timedelta(minutes=90))
    page = open_page(as_researcher)
    page.goto(f"/runs/{run.id}")

    def ask(hours):
        page.get_by_text("More", exact=True).or_(page.locator("summary[aria-label='More']")).first.press("Enter")
        page.get_by_role("button", name="Time limit…").press("Enter")
        page.get_by_label("Hours").fill(hours)
        for scheme in ("light", "dark"):
            for width in (1280, 390):
                page.emulate_media(color_scheme=scheme)
                page.set_viewport_size({"width": width, "height": 800})
                assert layout_faults(page) == []
        page.get_by_label("Hours").press("Enter")

    ask("1")
    expect(page.get_by_text("must be more than the 1.50 h that it has run")).to_be_visible()
    ask("2.5")
    expect(page.get_by_text("Time limit: 1 h 30 min of 2 h 30 min used")).to_be_visible()
    assert Run.objects.get(id=run.id).time_limit == timedelta(hours=2.5)
