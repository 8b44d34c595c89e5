"""A shared report: a researcher makes a link, a person without an account reads the report while a run continues, and the link is
revoked.
"""

import re
from urllib.parse import urlsplit

import pytest
from django.utils import timezone
from playwright.sync_api import expect

from tests.e2e.test_reports import lab, report  # noqa: F401 - fixtures
from tests.e2e.test_runs_table import photograph
from tests.e2e.test_sharing import PHONE, refusals
from tests.timeouts import SECONDS
from webapp.accounts.workspaces.services import allow_share_links
from webapp.experiments.models import MetricPoint
from webapp.reports import services as reports

pytestmark = pytest.mark.browser


@pytest.fixture
def link(open_page, as_researcher, team, report) -> str:  # noqa: F811
    """Makes a link on the page, and returns its path."""
    allow_share_links(team.owner, True)
    page = open_page(as_researcher)
    page.goto(f"/reports/{report.pk}")
    page.get_by_role("link", name="Share", exact=True).click()
    expect(page.get_by_role("main")).to_contain_text("eval/rubric_score, reward/mean")
    assert refusals(page) == []
    photograph(page, "report-share-new")
    page.get_by_label("Name").fill("For the paper")
    page.get_by_role("button", name="Create a link").click()
    path = urlsplit(page.locator("pre.code").inner_text().strip()).path
    assert refusals(page) == []
    return path


@pytest.fixture
def strange(chromium, server, link):
    """A page of a person who has the link and no cookie."""
    context = chromium.new_context(base_url=server.url, viewport={"width": 1280, "height": 800})
    page = context.new_page()
    page.set_default_timeout(SECONDS * 1000)
    yield page
    context.close()


def test_a_stranger_reads_a_report_that_asks_its_link_alone(strange, link):
    asked, errors, sockets = [], [], []
    strange.on("request", lambda request: asked.append(request))
    strange.on("pageerror", lambda error: errors.append(str(error)))
    strange.on("websocket", lambda socket: sockets.append(socket.url))
    strange.goto(link)
    expect(strange.locator(".chart canvas")).to_have_count(3)
    expect(strange.locator(".katex")).to_be_visible()
    expect(strange.locator(".report-table tbody tr")).to_have_count(3)
    expect(strange.locator(".report-rollout")).to_be_visible()
    expect(strange.get_by_text("Some of these runs were deleted, or are not shared.")).to_be_visible()
    strange.wait_for_load_state("networkidle")
    assert strange.locator("a:not(.skip)").count() == 0 and strange.locator("form").count() == 0
    assert refusals(strange) == []
    photograph(strange, "shared-report")
    strange.set_viewport_size(PHONE)
    assert refusals(strange) == []
    photograph(strange, "shared-report-phone")
    table = strange.get_by_role("region", name="Table of runs")
    name = table.locator("tbody td").first
    left = name.bounding_box()["x"]
    table.evaluate("node => { node.firstElementChild.style.minWidth = '40rem'; node.scrollLeft = 200; }")
    assert table.evaluate("node => node.scrollLeft") > 0
    assert name.bounding_box()["x"] == left, "whose numbers these are stays in view"
    assert strange.evaluate("document.documentElement.scrollWidth") <= PHONE["width"]
    paths = {urlsplit(request.url).path for request in asked}
    assert all(path.startswith(("/static/", link)) for path in paths), paths
    assert not any(link in each.all_headers().get("referer", "") for each in asked), "the address is a key"
    assert strange.context.cookies() == [] and not errors and not sockets


def test_its_charts_go_on_with_their_runs_until_the_link_is_revoked(
    strange,
    link,
    open_page,
    as_researcher,
    team,
    report,  # noqa: F811
    lab,  # noqa: F811
):
    strange.goto(link)
    live = strange.locator("[data-report-chart]").nth(1).locator(".chart-body")
    expect(live).to_have_attribute("aria-label", re.compile("at step 30"))
    MetricPoint.objects.create(run=lab[3], step=40, key="eval/rubric_score", value=0.9, time=timezone.now())
    expect(live).to_have_attribute("aria-label", re.compile("last 0.900 at step 40"))

    reports.write(team.researcher, report, 1, "Scaffolds help a lot", "Written later.")
    mine = open_page(as_researcher)
    mine.goto(f"/reports/{report.pk}/share")
    assert refusals(mine) == []
    photograph(mine, "report-share-links")
    strange.reload()
    expect(strange.get_by_role("heading", name="Scaffolds help", exact=True)).to_be_visible()
    mine.get_by_role("button", name="Show version 2 by For the paper").click()
    expect(mine.get_by_text("The link shows version 2 now.")).to_be_visible()
    strange.reload()
    expect(strange.get_by_text("Written later.")).to_be_visible()
    mine.set_viewport_size(PHONE)
    assert refusals(mine) == []
    photograph(mine, "report-share-links-phone")
    mine.get_by_role("button", name="Revoke For the paper").click()
    mine.get_by_role("button", name="Revoke").click()
    expect(mine).to_have_url(re.compile(f"/reports/{report.pk}/share$"))
    assert strange.reload().status == 404
    expect(strange.get_by_role("heading")).to_have_text("This link shows nothing")
