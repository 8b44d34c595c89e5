"""The help in a browser: by keyboard from the sidebar to a heading, on every screen, and from an alarm of a run to its page."""

import os
import re
from pathlib import Path

import pytest
from playwright.sync_api import expect

from tests.e2e.look import check_look
from tests.e2e.test_accessibility import AXE, in_both_themes
from tests.e2e.test_run_page import run  # noqa: F401 - a fixture
from webapp.experiments.models import Run

pytestmark = pytest.mark.browser


def picture(page, name: str) -> None:
    """Saves a picture in the folder of TOUCHSTONE_LOOK, so that a person can look at it."""
    if folder := os.environ.get("TOUCHSTONE_LOOK"):
        Path(folder).mkdir(parents=True, exist_ok=True)
        page.screenshot(path=Path(folder) / f"{name}.png")


def test_the_help_is_read_by_keyboard_on_every_screen(open_page, as_annotator):
    if not AXE.exists():
        pytest.skip("axe-core is not there: run `make setup`")
    page = open_page(as_annotator)
    page.goto("/")
    page.get_by_role("link", name="Help", exact=True).press("Enter")
    expect(page.get_by_role("heading", level=1)).to_have_text("Help")
    page.get_by_role("link", name="Alarms", exact=True).press("Enter")
    expect(page.get_by_role("heading", level=1)).to_have_text("Alarms")
    page.get_by_role("navigation", name="On this page").get_by_role("link", name="Dead gradients").press("Enter")
    expect(page.get_by_role("heading", name="Dead gradients")).to_be_in_viewport()
    for address in ("/help", "/help/alarms", "/help/from-opinions", "/help/api"):
        for width in (1280, 390):
            page.set_viewport_size({"width": width, "height": 900})
            assert in_both_themes(page, address) == [], (address, width)
            picture(page, f"{address.replace('/', '-')}-{width}-dark")
            check_look(page)
            page.emulate_media(color_scheme="light")
            page.set_viewport_size({"width": width, "height": 900})
            picture(page, f"{address.replace('/', '-')}-{width}")
    page.set_viewport_size({"width": 390, "height": 844})
    page.goto("/help/alarms")
    page.locator("summary", has_text="On this page").press("Enter")
    page.get_by_role("navigation", name="On this page").get_by_role("link", name="Dead gradients").press("Enter")
    expect(page.get_by_role("heading", name="Dead gradients")).to_be_in_viewport()


def test_requests_are_shown_in_the_chosen_language(open_page, as_researcher):
    page = open_page(as_researcher)
    page.goto("/help/api")
    launch, sweeps = (
        page.locator(".languages", has_text=words) for words in ("touchstone launch run.yaml --key", "sweeps.launch")
    )
    expect(launch.locator("pre:visible")).to_contain_text("$base/recipes/policy")
    button = sweeps.get_by_role("group", name="Language").get_by_role("button", name="Command")
    button.scroll_into_view_if_needed()
    before = button.bounding_box()
    button.press("Enter")
    expect(button).to_have_attribute("aria-pressed", "true")
    expect(sweeps.locator("pre:visible")).to_have_text(
        [re.compile("sweep.yaml"), re.compile("touchstone sweeps start")]
    )
    expect(launch.locator("pre:visible")).to_have_text([re.compile("run.yaml"), re.compile("touchstone launch")])
    expect(page.locator(".languages").first.locator("pre:visible")).to_contain_text("touchstone api GET /me")
    assert abs(button.bounding_box()["y"] - before["y"]) < 2, "what one reads stays where it is"
    page.goto("/help/home")
    expect(page.locator(".languages pre:visible")).to_contain_text("touchstone needs")


def test_an_alarm_leads_to_the_heading_about_it(open_page, as_researcher, run, process):  # noqa: F811
    trainer = process(Run.objects.get(pk=run.pk))
    facts = {"signal": "entropy", "since": 5, "share": 0.05, "before": 1.0, "value": 0.02, "usual": 0.4, "places": []}
    trainer.post(trainer.event("alarm", 7, **facts))
    page = open_page(as_researcher)
    page.goto(f"/runs/{run.id}")
    page.locator("#alarms summary").press("Enter")
    check_look(page)
    picture(page, "alarm")
    page.get_by_role("link", name="What this alarm means").press("Enter")
    expect(page).to_have_url(f"{page.url.split('/help')[0]}/help/alarms#the-entropy-has-collapsed")
    expect(page.get_by_role("heading", name="The entropy has collapsed")).to_be_in_viewport()
