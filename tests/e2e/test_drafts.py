"""A draft in a browser: kept from the form with a problem, found in the table, edited, launched, discarded; by keyboard, in both themes."""

import pytest
from playwright.sync_api import expect

from tests.e2e.look import on_screens, unfold
from tests.e2e.test_run_page import run  # noqa: F401 - a fixture
from webapp.experiments.models import Run

pytestmark = pytest.mark.browser


def test_a_draft_is_kept_edited_and_launched(open_page, as_researcher, run):  # noqa: F811
    page = open_page(as_researcher)
    page.goto(f"/runs/{run.id}/fork")
    page.get_by_label("Name optional").fill("For tonight")
    unfold(page, "f-optim-lr").fill("fast")
    page.get_by_role("button", name="Save as draft").press("Enter")
    page.wait_for_url(lambda url: "/fork" not in url)
    expect(page.get_by_role("heading", name="1 problem to fix")).to_be_visible()
    expect(page.get_by_role("button", name="Launch run")).to_be_disabled()
    on_screens(page, "draft-problem")
    page.goto("/experiments?q=state:draft")
    page.get_by_role("link", name="For tonight").press("Enter")
    page.get_by_role("link", name="Edit").press("Enter")
    field = unfold(page, "f-optim-lr")
    expect(field).to_have_value("fast")
    field.fill("0.0002")
    on_screens(page, "draft-edit")
    page.get_by_role("button", name="Save draft").press("Enter")
    page.wait_for_url(lambda url: "/edit" not in url)
    expect(page.get_by_text("problem to fix")).to_have_count(0)
    on_screens(page, "draft")
    other = open_page(as_researcher)
    other.goto(page.url)
    page.get_by_role("button", name="Launch run").press("Enter")
    expect(page.get_by_role("navigation", name="Parts of the run")).to_be_visible()
    other.get_by_role("button", name="Launch run").press("Enter")
    expect(other.get_by_role("navigation", name="Parts of the run")).to_be_visible()
    assert Run.objects.get(name="For tonight").state == "queued"


def test_a_discarded_draft_is_undone_with_its_tags(open_page, as_researcher, run):  # noqa: F811
    page = open_page(as_researcher)
    page.goto(f"/runs/{run.id}/fork")
    page.get_by_role("button", name="Save as draft").press("Enter")
    page.wait_for_url(lambda url: "/fork" not in url)
    address = page.url
    page.get_by_text("Add tags and notes").click()
    page.get_by_role("textbox", name="Tags").fill("tonight")
    page.get_by_role("button", name="Save", exact=True).click()
    expect(page.get_by_role("link", name="tonight")).to_be_visible()
    expect(page.get_by_role("region", name="History", exact=True)).to_contain_text("Saved as a draft")
    on_screens(page, "draft-labels")
    page.get_by_role("button", name="Discard").press("Enter")
    page.wait_for_url("**/experiments")
    assert not Run.objects.filter(state="draft").exists()
    on_screens(page, "draft-discarded")
    page.get_by_role("button", name="Undo").press("Enter")
    page.wait_for_url(address)
    expect(page.get_by_role("link", name="tonight")).to_be_visible()
    page.get_by_role("button", name="Discard").press("Enter")
    page.wait_for_url("**/experiments")
    page.goto(address)
    on_screens(page, "draft-restore")
    page.get_by_role("button", name="Restore").press("Enter")
    expect(page.get_by_role("link", name="tonight")).to_be_visible()
