"""Lineage in a browser: by keyboard from a version to its run and back to the people, in both themes, on a wide screen and on a phone."""

import pytest
from playwright.sync_api import expect

from tests.e2e.look import faults
from tests.webapp.lineage.test_lineage import World

pytestmark = pytest.mark.browser


def test_from_a_version_to_what_was_made_of_it_and_back_to_the_people(open_page, as_researcher, cast):
    world = World(cast)
    page = open_page(as_researcher)
    page.goto(f"/datasets/{world.version.dataset_id}/versions")
    page.get_by_role("link", name=f"Lineage of version {world.version.number}").focus()
    page.keyboard.press("Enter")
    expect(page.get_by_role("heading", level=1)).to_contain_text("Lineage of")
    runs = page.get_by_role("region", name="Runs")
    expect(runs.locator("tbody tr")).to_have_count(2)
    expect(page.get_by_text("If this dataset version were withdrawn")).to_be_visible()
    for scheme in ("light", "dark"):
        for width in (1280, 390):
            page.emulate_media(color_scheme=scheme)
            page.set_viewport_size({"width": width, "height": 900})
            assert faults(page) == [], (scheme, width)
    page.set_viewport_size({"width": 1280, "height": 900})
    runs.get_by_role("link", name="Show its lineage: e: run 2").focus()
    page.keyboard.press("Enter")
    page.get_by_role("link", name="What it rests on").click()
    expect(page.get_by_role("region", name="People")).to_contain_text("Person 2")
    expect(page.get_by_role("region", name="Judges")).to_contain_text("directly")
