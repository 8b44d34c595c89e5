"""The rule of checkpoints in a browser: an owner sees the preview, is asked once more, and switches it on; a run is marked."""

import os

import pytest
from playwright.sync_api import expect

from tests.e2e.look import check_look
from tests.webapp.experiments.conftest import launch, model, version  # noqa: F401 - fixtures
from tests.webapp.experiments.outputs.test_retention import checkpoints_left, make_ended_run, old  # noqa: F401 - fixtures
from webapp.experiments.outputs.retention import services

pytestmark = pytest.mark.browser


def test_an_owner_previews_and_switches_the_rule_on(open_page, as_owner, old, launch):  # noqa: F811
    marked = make_ended_run(launch())
    page = open_page(as_owner)
    page.goto(f"/runs/{marked.pk}/lineage")
    page.get_by_role("button", name="Keep all checkpoints").click()
    expect(page.get_by_role("button", name="Kept", exact=True)).to_be_visible()
    page.goto("/settings/profile")
    page.get_by_role("link", name="Retention", exact=True).click()
    page.get_by_role("spinbutton").fill("20")
    page.get_by_role("button", name="Preview").click()
    preview = page.get_by_role("region", name="Preview: 20 days after the end of a run")
    expect(preview).to_contain_text("2 checkpoints of 1 run")
    check_look(page)
    _photo(page, "retention")
    preview.get_by_role("button", name="Switch on").click()
    expect(page.get_by_role("heading", level=1)).to_contain_text("Delete checkpoints 20 days after the end of a run?")
    _photo(page, "retention-sure")
    page.get_by_role("button", name="Switch on").click()
    expect(page.get_by_text("on: after 20 days")).to_be_visible()
    services.work()
    assert checkpoints_left(old) == [2, 4] and checkpoints_left(marked) == [1, 2, 3, 4]
    page.reload()
    expect(page.get_by_text("Deleted so far: 2 checkpoints")).to_be_visible()
    page.get_by_role("button", name="Switch off").click()
    expect(page.get_by_text("Nothing more is deleted.")).to_be_visible()
    page.goto(f"/runs/{old.pk}/lineage")
    expect(page.get_by_text("has deleted 2 checkpoints of this run")).to_be_visible()
    _photo(page, "retention-run")


def _photo(page, name: str) -> None:
    """Screenshots for people, if TOUCHSTONE_LOOK names a folder."""
    if folder := os.environ.get("TOUCHSTONE_LOOK"):
        for scheme in ("light", "dark"):
            page.emulate_media(color_scheme=scheme)
            page.screenshot(path=f"{folder}/{name}-{scheme}.png", full_page=True)
