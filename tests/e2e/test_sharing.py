"""A shared comparison: a researcher makes a link, a person without an account opens it, and it is revoked while the page is open."""

from urllib.parse import urlsplit

import pytest
from playwright.sync_api import Page, expect

from tests.e2e.look import layout_faults
from tests.e2e.test_accessibility import AXE, LOOK
from tests.e2e.test_runs_table import photograph, runs  # noqa: F401 - a fixture
from tests.timeouts import SECONDS
from webapp.accounts.workspaces.services import allow_share_links

pytestmark = pytest.mark.browser
PHONE = {"width": 390, "height": 844}


def refusals(page: Page) -> list[str]:
    """The faults that axe finds in both themes, and those that a designer would see immediately."""
    page.evaluate(AXE.read_text())
    found = []
    for scheme in ("light", "dark"):
        page.emulate_media(color_scheme=scheme, reduced_motion="reduce")
        found += [f"{scheme}: {each}" for each in page.evaluate(LOOK) + layout_faults(page)]
    return found


def test_a_comparison_is_shared_opened_without_an_account_and_revoked(
    open_page,
    chromium,
    server,
    as_researcher,
    team,
    runs,  # noqa: F811
):
    allow_share_links(team.owner, True)
    mine = open_page(as_researcher)
    mine.goto(f"/runs/compare?ids={','.join(str(run.pk) for run in runs)}")
    mine.locator("#compare-finals tbody tr").nth(1).get_by_role("button", name="Set as baseline").click()
    expect(mine.get_by_role("columnheader", name="against the baseline").first).to_be_visible()
    mine.get_by_role("link", name="Share").click()
    expect(mine.get_by_role("heading", name="Share a comparison")).to_be_visible()
    expect(mine.get_by_role("main")).to_contain_text("optim.lr")
    assert refusals(mine) == []
    photograph(mine, "share-new")
    mine.get_by_label("Name").fill("For the paper")
    mine.get_by_role("button", name="Create a link").click()
    link = urlsplit(mine.locator("pre.code").inner_text().strip()).path
    assert refusals(mine) == []
    photograph(mine, "share-made")

    context = chromium.new_context(base_url=server.url, viewport={"width": 1280, "height": 800})
    try:
        strange = context.new_page()
        strange.set_default_timeout(SECONDS * 1000)
        asked, errors, sockets = [], [], []
        strange.on("request", lambda request: asked.append(request))
        strange.on("pageerror", lambda error: errors.append(str(error)))
        strange.on("websocket", lambda socket: sockets.append(socket.url))
        strange.goto(link)
        rows = strange.locator("#compare-finals tbody tr")
        expect(rows).to_have_count(3)
        expect(rows.nth(1)).to_contain_text("baseline")
        expect(strange.locator("#compare-charts .chart canvas").first).to_be_visible()
        expect(strange.locator("#compare-charts .chart")).to_have_count(6)
        expect(strange.locator("#compare-scatter circle")).to_have_count(6)
        expect(strange.locator("#compare-differences")).to_have_text("2 config fields differ")
        strange.wait_for_load_state("networkidle")
        assert strange.locator("a:not(.skip)").count() == 0 and strange.locator("form").count() == 0
        assert refusals(strange) == []
        photograph(strange, "shared")
        strange.get_by_role("checkbox", name="Fold seeds").uncheck()
        rows.nth(1).get_by_role("button", name="Clear baseline").click()
        expect(strange.get_by_role("columnheader", name="against the baseline")).to_have_count(0)
        strange.set_viewport_size(PHONE)
        assert refusals(strange) == []
        photograph(strange, "shared-phone")
        paths = {urlsplit(request.url).path for request in asked}
        assert all(path.startswith(("/static/", link)) for path in paths), paths
        assert not any(link in each.all_headers().get("referer", "") for each in asked), "the address is a key"
        assert context.cookies() == [] and not errors and not sockets

        mine.goto("/settings/share-links")
        expect(mine.get_by_role("row").nth(1)).to_contain_text("For the paper")
        assert refusals(mine) == []
        photograph(mine, "share-links")
        mine.get_by_role("button", name="Revoke For the paper").click()
        mine.get_by_role("button", name="Revoke").click()
        expect(mine).to_have_url(f"{server.url}/settings/share-links")
        expect(mine.locator("tbody tr")).to_have_count(0)

        strange.get_by_label("Add a metric").select_option(index=1)  # in the middle of the session
        expect(strange.locator(".toast")).to_contain_text("This link shows nothing")
        answer = strange.reload()
        assert answer.status == 404
        expect(strange.get_by_role("heading")).to_have_text("This link shows nothing")
        assert refusals(strange) == []
        photograph(strange, "shared-gone")
    finally:
        context.close()
