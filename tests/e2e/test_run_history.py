"""The history of a run in a browser. It continues by itself, and fits a phone."""

import pytest
from playwright.sync_api import expect

from tests.e2e.look import layout_faults
from tests.e2e.test_run_page import run  # noqa: F401 - a fixture

pytestmark = pytest.mark.browser


def test_a_person_whose_session_has_ended_is_told_so_once_and_stays_on_the_page(
    open_page,
    as_researcher,
    as_owner,
    process,
    run,  # noqa: F811
):
    process(run)
    page = open_page(as_researcher)
    page.goto(f"/runs/{run.id}/history")
    page.wait_for_selector('#connection[data-state="live"]')
    page.context.clear_cookies()
    other = open_page(as_owner)
    other.goto(f"/runs/{run.id}")
    other.get_by_role("button", name="Pause").click()
    told = page.locator(".toast", has_text="You are signed out.")
    expect(told).to_be_visible()
    expect(page.locator("#history tbody tr")).to_have_count(2)
    page.evaluate("""async () => {
      const { json } = await import("/static/js/http.js");
      const { toast } = await import("/static/js/toast.js");
      await json("/api/v1/runs").catch((error) => toast(error.message, { tone: "bad" }));
      await htmx.ajax("GET", "/experiments/line", "#history").catch(() => null);
    }""")
    expect(told).to_have_count(1)
    expect(page.locator("#history tbody tr")).to_have_count(2)
    assert page.url.endswith("/history")


def test_the_history_goes_on_while_it_is_looked_at(open_page, as_researcher, process, run):  # noqa: F811
    trainer = process(run)
    page = open_page(as_researcher)
    page.goto(f"/runs/{run.id}")
    page.get_by_role("link", name="History").click()
    page.wait_for_selector('#connection[data-state="live"]')
    rows = page.locator("#history tbody tr")
    expect(rows).to_have_count(2)
    other = open_page(as_researcher)
    other.goto(f"/runs/{run.id}")
    other.get_by_role("button", name="Stop").click()
    expect(rows).to_have_count(3)
    expect(rows.first).to_contain_text("Asked to stop")
    expect(rows.first).to_contain_text("Rosa")
    trainer.post(trainer.event("state", state="stopped", reason="Stopped after step 3, as somebody had asked it to"))
    expect(rows.first).to_contain_text("Stopped after step 3")
    for scheme in ("light", "dark"):
        for width in (1280, 390):
            page.emulate_media(color_scheme=scheme)
            page.set_viewport_size({"width": width, "height": 800})
            assert layout_faults(page) == []
