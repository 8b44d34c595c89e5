"""Lineage in a browser: by keyboard from a version to its run and back to the people, in both themes, on a wide screen and on a phone."""

import os

import pytest
from playwright.sync_api import Page, expect

from tests.e2e.look import check_look, layout_faults
from tests.webapp.lineage.test_lineage import World

pytestmark = pytest.mark.browser


def test_from_a_version_to_what_was_made_of_it_and_back_to_the_people(open_page, as_researcher, team):
    world = World(team)
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
            assert layout_faults(page) == [], (scheme, width)
    page.set_viewport_size({"width": 1280, "height": 900})
    runs.get_by_role("link", name="Show its lineage: e: run 2").focus()
    page.keyboard.press("Enter")
    page.get_by_role("link", name="Based on").click()
    expect(page.get_by_role("region", name="People")).to_contain_text("Person 2")
    expect(page.get_by_role("region", name="Judges")).to_contain_text("directly")


def test_the_graph_is_walked_by_keyboard_and_fits_every_screen(open_page, as_researcher, team):
    world = World(team)
    for number in range(12):
        world.output(world.run("policy", world.version), f"m{number}")
    page = open_page(as_researcher)
    page.goto(f"/lineage/run/{world.policy.pk}")
    page.get_by_role("link", name="Graph", exact=True).click()
    boxes = page.locator(".lineage-box")
    expect(boxes.filter(has_text="e: run 2")).to_have_attribute("aria-current", "true")
    page.get_by_role("link", name="8 steps in each direction").click()
    expect(boxes.filter(has_text="Anna")).to_be_visible()
    judge = boxes.filter(has_text="j v1")
    judge.focus()
    page.keyboard.press("Enter")
    expect(page.get_by_role("heading", level=1)).to_contain_text("Lineage of j v1")
    page.goto(f"/lineage/version/{world.version.pk}/graph?steps=3")
    page.locator(".lineage-box", has_text="13 runs").click()
    expect(page.get_by_role("region", name="Runs").locator("tbody tr")).to_have_count(
        14
    )  # that of the judge, too, which is further away
    page.go_back()
    page.get_by_text("The same as a list").click()
    expect(page.locator(".lineage-list")).to_contain_text("made from")
    for address, name in ((f"run/{world.policy.pk}", "run"), (f"version/{world.version.pk}", "version")):
        page.goto(f"/lineage/{address}/graph?steps=3")
        check_look(page)
        page.reload()
        expect(boxes.and_(page.locator("[aria-current]"))).to_be_in_viewport(ratio=1)
        save_pictures(page, name)
    shown = page.goto(f"/lineage/report/{world.report.pk}/graph")
    assert shown is not None and shown.status == 200


def save_pictures(page: Page, name: str) -> None:
    """Screenshots for people, if TOUCHSTONE_LOOK names a folder."""
    if folder := os.environ.get("TOUCHSTONE_LOOK"):
        for scheme in ("light", "dark"):
            page.emulate_media(color_scheme=scheme)
            page.screenshot(path=f"{folder}/graph-{name}-{scheme}.png", full_page=True)
