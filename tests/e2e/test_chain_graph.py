"""The graph of a chain in a browser: a join is added from the form, drawn once with a line from each run, and reached by keyboard."""

import pytest
from playwright.sync_api import expect

from tests.e2e.look import on_screens
from tests.e2e.test_run_page import run  # noqa: F401 - a fixture
from webapp.experiments.launch import services as launching
from webapp.experiments.models import Run

pytestmark = pytest.mark.browser


def test_a_join_is_added_and_drawn(open_page, as_researcher, team, run):  # noqa: F811
    other = launching.fork(
        team.researcher, Run.objects.with_names().get(pk=run.pk), overrides={"seed": 2}, name="With another seed"
    )
    page = open_page(as_researcher)
    page.goto(f"/runs/{run.id}/chain")
    page.get_by_role("button", name="Then evaluate…").press("Enter")
    dialog = page.get_by_role("dialog")
    dialog.get_by_label("With another seed").check()
    dialog.get_by_label("Name optional").fill("How good both are after a long name that does not fit")
    on_screens(page, "chain-dialog")
    dialog.get_by_role("button", name="Add the step").press("Enter")
    expect(page.locator(".chain-line")).to_have_count(2)
    page.goto(f"/runs/{run.id}/chain/0/policy")
    page.get_by_label("With another seed").check()
    page.get_by_label("Name optional").fill("Goes on")
    on_screens(page, "chain-form")
    page.get_by_role("button", name="Launch afterwards").press("Enter")
    expect(page.locator(".chain-line")).to_have_count(4)
    on_screens(page, "chain-graph")
    link = page.locator(".chain-graph").get_by_role("link", name="With another seed")
    link.focus()
    link.press("Enter")
    page.wait_for_url(f"**/runs/{other.pk}/chain")
    expect(page.locator(".chain-box[aria-current]")).to_contain_text("With another seed")
