"""The page of costs in a browser: it says what was measured, passes axe in both themes, and fits a phone."""

from datetime import timedelta

import pytest
from django.utils import timezone
from playwright.sync_api import expect

from tests.e2e.look import looked_at
from tests.e2e.test_accessibility import AXE, in_both_themes
from tests.webapp.experiments.conftest import launch, model, version  # noqa: F401  fixtures
from webapp.experiments.models import Run

pytestmark = pytest.mark.browser


def test_the_costs_of_runs_fit_every_screen_and_lead_to_the_runs(open_page, as_researcher, launch):  # noqa: F811
    if not AXE.exists():
        pytest.skip("axe-core is not there: run `make setup`")
    page, now = open_page(as_researcher), timezone.now()
    assert in_both_themes(page, "/costs?by=run") == [], "while there is nothing"
    for hours, device in ((3, "the processor"), (1, "NVIDIA H200"), (2, "")):
        lasted = {"under_way": timedelta(hours=hours), "started_at": now, "ended_at": now, "learner_device": device}
        Run.objects.filter(pk=launch().pk).update(name=f"lasted {hours} hours", **lasted)
    for width in (1280, 390):
        page.set_viewport_size({"width": width, "height": 900})
        assert in_both_themes(page, "/costs?by=run") == [], width
        looked_at(page)
    expect(page.locator("tfoot")).to_contain_text("6.00")
    expect(page.locator("tfoot")).to_contain_text("1 unknown")
    page.get_by_role("link", name="lasted 3 hours").click()
    expect(page.get_by_role("heading", level=1)).to_contain_text("lasted 3 hours")
    page.get_by_role("link", name="costs", exact=True).click()
    expect(page.get_by_text("Show all work")).to_be_visible()
    assert in_both_themes(page, page.url.removeprefix(page.url.split("/costs")[0])) == [], "of one run"
    looked_at(page)
    expect(page.locator("tbody tr")).to_have_count(1)
