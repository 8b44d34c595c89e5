"""The pages without a mouse, and on a phone."""

import pytest
from playwright.sync_api import expect

pytestmark = pytest.mark.browser


def test_the_rail_folds_by_a_key_and_stays_so_on_the_next_page(open_page, as_owner):
    page = open_page(as_owner)
    page.goto("/")
    wide = page.locator(".rail").bounding_box()["width"]
    page.keyboard.press("[")
    page.goto("/datasets")
    assert page.locator(".rail").bounding_box()["width"] < wide / 2


def test_the_palette_opens_a_page_without_a_pointer(open_page, as_owner):
    page = open_page(as_owner)
    page.goto("/")
    page.keyboard.press("Control+k")
    expect(page.get_by_role("combobox")).to_be_focused()
    page.keyboard.type("verif")
    expect(page.get_by_role("option", selected=True)).to_have_text("Verifiers")
    page.keyboard.press("Enter")
    page.wait_for_url("**/verifiers")


def test_keys_do_nothing_while_somebody_types(open_page, as_owner):
    page = open_page(as_owner)
    page.goto("/settings/tokens")
    page.get_by_label("Name").fill("")
    page.keyboard.type("g h[?")
    expect(page.get_by_label("Name")).to_have_value("g h[?")
    assert page.url.endswith("/settings/tokens")
    expect(page.locator("#keys")).to_be_hidden()


def test_on_a_phone_the_navigation_is_a_drawer_that_escape_closes(open_page, as_owner):
    page = open_page(as_owner)
    page.set_viewport_size({"width": 375, "height": 740})
    page.goto("/")
    expect(page.locator(".rail")).to_be_hidden()
    page.get_by_role("button", name="Menu", exact=True).click()
    expect(page.locator(".rail-nav a").first).to_be_focused()
    page.keyboard.press("Escape")
    expect(page.locator(".rail")).to_be_hidden()
    assert page.evaluate("document.documentElement.scrollWidth <= innerWidth")
