"""The uses of a model in a browser: folded by purpose, opened by keyboard, in both themes and on a phone."""

import pytest
from playwright.sync_api import expect

from tests.e2e.look import on_screens
from webapp.inference.models import RegisteredModel

pytestmark = pytest.mark.browser


def test_the_uses_of_a_model_open_by_keyboard_one_purpose_at_a_time(open_page, as_researcher, team):
    model = RegisteredModel.objects.create(workspace=team.workspace, name="m", source="hub", path="o/m")
    page = open_page(as_researcher)
    page.goto(f"/models/{model.pk}")
    expect(page.get_by_role("heading", name="Lineage")).to_be_in_viewport()
    link = page.get_by_role("link", name="Base: Policy from rubrics", exact=True)
    expect(link).not_to_be_visible()
    page.locator("summary", has_text="Train it further").press("Enter")
    expect(link).to_be_visible()
    on_screens(page, "model-uses")
    page.locator("summary", has_text="Teach another model").press("Enter")
    expect(link).not_to_be_visible()
    page.keyboard.press("Tab")
    page.keyboard.press("Enter")
    page.wait_for_url("**/runs/new?*")
