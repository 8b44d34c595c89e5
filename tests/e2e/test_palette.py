"""The command palette: *Enter* opens an entry of the list for the text that is in the field."""

import pytest
from playwright.sync_api import expect

from webapp.datasets.models import Dataset

pytestmark = pytest.mark.browser

# types and presses Enter before anything else happens on the page
TYPE_AND_ENTER = """(text) => {
  const field = document.querySelector("#palette input");
  field.value = text;
  field.dispatchEvent(new Event("input", { bubbles: true }));
  field.dispatchEvent(new KeyboardEvent("keydown", { key: "Enter", bubbles: true, cancelable: true }));
}"""


def opened(open_page, client):
    page = open_page(client)
    page.goto("/experiments")
    page.keyboard.press("Control+k")
    expect(page.locator("#palette .palette-option").first).to_be_visible()
    return page


def test_enter_right_after_a_key_takes_no_entry_for_an_earlier_text(open_page, as_owner):
    page = opened(open_page, as_owner)
    page.evaluate(TYPE_AND_ENTER, "verifiers")
    page.wait_for_url("**/verifiers")


def test_enter_waits_for_what_the_server_finds(open_page, as_owner, team):
    dataset = Dataset.objects.create(workspace=team.workspace, name="Zyxwvut")
    page, held = opened(open_page, as_owner), []
    page.route("**/search.json*", lambda route: held.append(route))
    with page.expect_request("**/search.json?q=Zyxwvut"):
        page.evaluate(TYPE_AND_ENTER, "Zyxwvut")
    expect(page.locator("#palette")).to_contain_text("Searching…")
    held[0].continue_()
    page.wait_for_url(f"**/datasets/{dataset.pk}*")


def test_enter_is_forgotten_when_the_text_changes(open_page, as_owner, team):
    Dataset.objects.create(workspace=team.workspace, name="Zyxwvut")
    page, held = opened(open_page, as_owner), []
    page.route("**/search.json*", lambda route: route.continue_() if held else held.append(route))
    with page.expect_request("**/search.json?q=Zyxwvut"):
        page.evaluate(TYPE_AND_ENTER, "Zyxwvut")
    page.locator("#palette input").fill("Zyxwvu")
    expect(page.locator("#palette .palette-option", has_text="Zyxwvut")).to_be_visible()
    assert page.url.endswith("/experiments")
    page.locator("#palette input").fill("Zyxwvuttt")
    expect(page.locator("#palette")).to_contain_text("Nothing found.")
    held[0].abort()
