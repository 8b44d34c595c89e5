"""The reconciler's page in a browser: in both themes, on a wide screen and on a phone, with and without an answer from Ray."""

import os
from pathlib import Path

import pytest
from playwright.sync_api import expect

from tests.e2e.test_accessibility import LOOK, NAMED, bring_axe
from tests.team import browser
from tests.webapp.experiments.conftest import launch, model, version  # noqa: F401 - fixtures
from webapp.core.auditing import audit
from webapp.core.distributed import reconciling

pytestmark = [pytest.mark.browser, pytest.mark.django_db(transaction=True)]
PAGE = "/installation/reconciler"
DONE = "Its process is gone: Ray does not know the job any more, perhaps because Touchstone or Ray was restarted, so it continues as attempt 2"


def is_for_everybody(page, name: str) -> None:
    """Asserts that axe finds no fault and that nothing is wider than the window. Saves a picture in the folder of TOUCHSTONE_LOOK."""
    assert page.evaluate(LOOK) + page.evaluate(NAMED) == [], name
    assert not page.evaluate("document.documentElement.scrollWidth > innerWidth"), name
    if folder := os.environ.get("TOUCHSTONE_LOOK"):
        Path(folder).mkdir(parents=True, exist_ok=True)
        page.screenshot(path=f"{folder}/reconciler-{name}.png", full_page=True)


@pytest.mark.parametrize("width", [1440, 390])
@pytest.mark.parametrize("theme", ["light", "dark"])
def test_an_administrator_sees_what_was_heard_what_was_compared_and_what_was_mended(
    open_page, team, request, theme, width
):
    page = open_page(browser(team.owner), color_scheme=theme)
    bring_axe(page)
    page.set_viewport_size({"width": width, "height": 900})
    page.goto("/installation")
    page.get_by_role("navigation", name="Installation").get_by_role("link", name="Reconciler").click()
    expect(page.get_by_role("heading", name="Nothing has differed")).to_be_visible()
    is_for_everybody(page, f"empty-{theme}-{width}")
    run = request.getfixturevalue("launch")()
    reconciling.record_answer()
    for kind in reconciling.KINDS:
        reconciling.compared(kind, 12, 2)
    told = {"attempt": 1, "believed": "running", "ray": "does not know the job", "done": DONE}
    audit.record_all(team.workspace, None, "run.reconciled", [run] * 60, **told)
    page.goto(PAGE)
    expect(page.get_by_role("alert")).to_have_count(0)
    for cell in page.locator("tbody tr").first.locator("td.breaks").all():
        assert cell.bounding_box()["width"] >= 170, "as wide as a sentence needs, also on a phone: the table scrolls"
    is_for_everybody(page, f"mended-{theme}-{width}")
    page.get_by_role("link", name="Older differences").click()
    expect(page.get_by_role("row")).to_have_count(11)
    reconciling.not_heard("Ray does not answer at http://head:8265: connection refused")
    page.goto(PAGE)
    expect(page.get_by_role("alert")).to_contain_text("Ray has not answered since")
    is_for_everybody(page, f"silent-{theme}-{width}")
    page.get_by_role("link", name=f"Run {run.pk}").first.click()
    page.wait_for_url(f"**/runs/{run.pk}")
