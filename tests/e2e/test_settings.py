"""The settings: every tab is in view on a wide screen, and on a phone the tab of the page."""

import pytest
from playwright.sync_api import expect

from tests.e2e.look import on_screens

pytestmark = pytest.mark.browser


def test_no_tab_is_out_of_view(open_page, as_owner):
    page = open_page(as_owner)
    page.goto("/settings/profile")
    tabs = page.get_by_role("navigation", name="Settings").get_by_role("link")
    names = tabs.all_inner_texts()
    assert {"Profile", "Workspaces", "Members", "Audit log"} <= set(names)
    for tab in tabs.all():
        expect(tab).to_be_in_viewport(ratio=1)
    page.set_viewport_size({"width": 390, "height": 800})
    for name in names:
        page.goto("/settings/profile")
        page.get_by_role("navigation", name="Settings").get_by_role("link", name=name, exact=True).press("Enter")
        if name != "Installation":
            expect(page.locator(".tab-rows [aria-current]")).to_be_in_viewport(ratio=1)
    page.goto("/settings/audit")
    on_screens(page, "settings")
