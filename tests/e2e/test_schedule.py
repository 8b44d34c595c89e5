"""“Start not before” in a browser: on the form that launches a run and in the menu of a waiting run, by keyboard, in both themes."""

from datetime import timedelta

import pytest
from django.utils import timezone
from playwright.sync_api import expect

from tests.e2e.look import layout_faults
from tests.e2e.test_run_page import run  # noqa: F401 - a fixture
from webapp.experiments.lifecycle import utc_times
from webapp.experiments.models import MetricPoint, Run

pytestmark = pytest.mark.browser
LOOKS = [(scheme, width) for scheme in ("light", "dark") for width in (1280, 390)]


def is_well(page):
    for scheme, width in LOOKS:
        page.emulate_media(color_scheme=scheme)
        page.set_viewport_size({"width": width, "height": 800})
        assert layout_faults(page) == []


def test_a_run_that_waits_is_put_off_and_let_go_again(open_page, as_researcher, run):  # noqa: F811
    Run.objects.filter(id=run.id).update(state="queued", next_try_at=None)
    moment = timezone.now() + timedelta(days=1)
    page = open_page(as_researcher)
    page.goto(f"/runs/{run.id}")

    def ask(text):
        page.locator("summary[aria-label='More']").press("Enter")
        page.get_by_role("button", name="Start not before…").press("Enter")
        page.get_by_label("Date and time, UTC").fill(text)
        is_well(page)
        page.get_by_role("dialog").get_by_role("button", name="Set").press("Enter")

    ask("2020-01-01T10:00")
    expect(page.get_by_text("Start not before: has passed")).to_be_visible()
    ask(utc_times.field(moment))
    expect(page.get_by_text(f"Waits until {utc_times.utc_text(moment, timezone.now())}")).to_be_visible()
    ask("")
    expect(page.get_by_text("Waits until")).to_have_count(0)
    assert Run.objects.get(id=run.id).not_before is None


def test_the_form_says_what_is_wrong_at_its_field(open_page, as_researcher, run):  # noqa: F811
    page = open_page(as_researcher)
    page.goto(f"/runs/{run.id}/fork")
    field = page.get_by_label("Start not before")
    field.fill("2020-01-01T10:00")
    page.get_by_role("button", name="Launch run").press("Enter")
    expect(page.locator("#e-not_before")).to_contain_text("has passed")
    is_well(page)
    moment = utc_times.field(timezone.now() + timedelta(days=1))
    field.fill(moment)
    page.get_by_role("button", name="Launch run").press("Enter")
    page.wait_for_url(lambda url: "/fork" not in url)
    assert utc_times.field(Run.objects.latest("id").not_before) == moment


def test_a_short_run_takes_as_long_on_its_bar_as_in_its_reason(open_page, as_researcher, run):  # noqa: F811
    MetricPoint.objects.create(run=run, key="perf/step_s", step=1, value=0.3, time=timezone.now())
    Run.objects.filter(id=run.id).update(state="queued", step=1, eta_s=None, steps_total=4)
    page = open_page(as_researcher)
    page.goto(f"/runs/{run.id}")
    expect(page.locator("[data-bind=left]")).to_have_text("takes about a minute")
