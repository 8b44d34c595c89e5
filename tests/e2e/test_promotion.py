"""Aliases in a browser. By keyboard, an alias is given on a model's page, moved and removed. The list and the launch form show it."""

import pytest
from playwright.sync_api import expect

from tests.e2e.look import layout_faults
from webapp.inference.models import ModelAlias, RegisteredModel
from webapp.inference.promotion import services

pytestmark = pytest.mark.browser


@pytest.fixture
def models(team, transactional_db):
    made = [("base", "hub"), ("policy-run-3", "local")]
    return [
        RegisteredModel.objects.create(workspace=team.workspace, name=name, source=source, path=f"o/{name}")
        for name, source in made
    ]


def test_an_alias_is_given_moved_and_removed(open_page, as_researcher, team, models):
    base, trained = models
    services.move(team.researcher, "champion", base, reason="the first that passed the audit")
    page = open_page(as_researcher)
    page.goto(f"/models/{trained.pk}")
    page.locator("summary[aria-label=More]").focus()
    page.keyboard.press("Enter")
    page.get_by_role("link", name="Give it an alias").focus()
    page.keyboard.press("Enter")
    expect(page.get_by_role("list", name="Aliases now")).to_contain_text("points at base")
    assert layout_faults(page) == []
    page.get_by_role("combobox", name="Alias").fill("@champion")
    page.get_by_label("Reason").fill("0.04 better on the held-out audit")
    page.keyboard.press("Tab")
    page.keyboard.press("Enter")
    expect(page.get_by_role("region", name="Aliases and stages")).to_contain_text("moved here from base")
    page.goto(f"/models/{trained.pk}/stage")
    page.get_by_role("combobox", name="Stage").select_option("In production")
    page.get_by_role("button", name="Save").click()
    expect(page.get_by_role("region", name="Aliases and stages")).to_contain_text("In production")
    for address in (f"/models/{trained.pk}", "/models", "/models/aliases"):
        page.goto(address)
        for scheme in ("light", "dark"):
            for width in (1280, 390):
                page.emulate_media(color_scheme=scheme)
                page.set_viewport_size({"width": width, "height": 900})
                assert layout_faults(page) == [], (address, scheme, width)
    page.set_viewport_size({"width": 1280, "height": 900})
    page.get_by_role("button", name="Remove @champion").click()
    page.get_by_role("button", name="Remove it").click()
    expect(page.get_by_text("@champion removed")).to_be_visible()
    assert not ModelAlias.objects.exists()
