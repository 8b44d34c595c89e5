"""The form that repeats a run, in a browser: the time zone is the browser's, only the fields of the rhythm are shown, and it works by keyboard."""

import pytest
from playwright.sync_api import expect

from tests.e2e.look import layout_faults, picture
from tests.e2e.test_run_page import run  # noqa: F401 - a fixture
from webapp.experiments.models import RunRepeat

pytestmark = pytest.mark.browser


def test_a_run_is_repeated_paused_and_kept_so_after_a_question(open_page, as_researcher, run):  # noqa: F811
    page = open_page(as_researcher)
    page.goto(f"/experiments/repeats?run={run.id}")
    zone = page.evaluate("Intl.DateTimeFormat().resolvedOptions().timeZone")
    expect(page.get_by_label("Time zone")).to_have_value(zone)
    page.get_by_label("When").select_option("Every few hours")
    expect(page.get_by_label("Time of the day")).to_be_hidden()
    page.get_by_label("Hours between two launches").fill("six")
    page.get_by_role("button", name="Repeat", exact=True).click()
    expect(page.get_by_text("enter a whole number")).to_be_visible()
    expect(page.get_by_label("Hours between two launches")).to_have_value("six")
    page.get_by_label("When").select_option("Every Sunday")
    page.get_by_label("Time of the day").fill("02:30")
    page.get_by_label("Time zone").fill("Europe/Vienna")
    page.get_by_role("button", name="Repeat", exact=True).press("Enter")
    table = page.get_by_role("region", name="Repeated runs", exact=True)
    expect(table).to_contain_text("Every Sunday at 02:30 (Europe/Vienna)")
    for scheme in ("light", "dark"):
        for width in (1280, 390):
            page.emulate_media(color_scheme=scheme)
            page.set_viewport_size({"width": width, "height": 900})
            assert layout_faults(page) == []
            picture(page, f"repeats-{scheme}-{width}", full_page=True)
    page.get_by_role("button", name="Pause repeats of").click()
    expect(table).to_contain_text("Paused")
    page.get_by_role("button", name="Delete repeats of").click()
    expect(page.get_by_role("heading", name="Stop repeating")).to_be_visible()
    page.go_back()
    expect(table).to_contain_text("Paused")
    assert RunRepeat.objects.get().paused
