"""A form that is sent by POST is sent once, however often its button is pressed."""

import pytest
from playwright.sync_api import Route, expect

from webapp.accounts.models import ApiToken

pytestmark = pytest.mark.browser
PRESS_TWICE = (
    "(button) => { button.click(); setTimeout(() => button.click(), 50); return button.getAttribute('aria-busy'); }"
)


def test_a_double_click_makes_one_thing(open_page, as_owner):
    page = open_page(as_owner)
    page.goto("/settings/tokens")
    page.get_by_label("Name").fill("nightly")
    held: list[Route] = []  # the server has not answered yet when the second press comes
    page.route(
        "**/settings/tokens", lambda route: held.append(route) if route.request.method == "POST" else route.continue_()
    )
    with page.expect_request(lambda request: request.method == "POST"):
        assert page.get_by_role("button", name="Create token").evaluate(PRESS_TWICE) == "true", (
            "it shows that it is sent"
        )
    page.wait_for_timeout(200)
    for route in held:
        route.continue_()
    expect(page.get_by_role("heading", name="Your new token")).to_be_visible()
    assert len(held) == 1 and ApiToken.objects.filter(name="nightly").count() == 1


def test_a_form_can_be_sent_again_after_stop(open_page, as_owner):
    """In an earlier version, it stayed locked until the page was loaded again, which threw away what was typed."""
    page = open_page(as_owner)
    page.goto("/settings/tokens")
    page.get_by_label("Name").fill("nightly")
    held: list[Route] = []
    page.route(
        "**/settings/tokens", lambda route: held.append(route) if route.request.method == "POST" else route.continue_()
    )
    button = page.get_by_role("button", name="Create token")
    with page.expect_request(lambda request: request.method == "POST"):
        # as the button of the browser does; while a page is being left, Playwright runs nothing in it
        page.evaluate("setTimeout(() => stop(), 1000)")
        assert button.evaluate(PRESS_TWICE) == "true"
    expect(button).not_to_have_attribute("aria-busy", "true")
    expect(page.get_by_label("Name")).to_have_value("nightly")
    page.unroute("**/settings/tokens")
    button.click()
    expect(page.get_by_role("heading", name="Your new token")).to_be_visible()
    assert ApiToken.objects.filter(name="nightly").count() == 1


def test_a_form_that_is_sent_without_a_network_stays_with_its_words(open_page, as_owner):
    """The browser would show its own error page instead, and what was typed could be lost."""
    page = open_page(as_owner)
    page.goto("/settings/tokens")
    page.get_by_label("Name").fill("nightly")
    page.context.set_offline(True)
    page.get_by_role("button", name="Create token").click()
    expect(
        page.get_by_text("You are offline. Nothing was sent; try again when the connection is back.")
    ).to_be_visible()
    expect(page.get_by_label("Name")).to_have_value("nightly")
    page.context.set_offline(False)
    page.get_by_role("button", name="Create token").click()
    expect(page.get_by_role("heading", name="Your new token")).to_be_visible()
    assert ApiToken.objects.filter(name="nightly").count() == 1


def test_a_browser_that_counts_as_offline_still_sends_to_a_server_that_answers(open_page, as_owner):
    """A laptop without a network, on which the server itself runs."""
    page = open_page(as_owner)
    page.add_init_script("Object.defineProperty(Navigator.prototype, 'onLine', { get: () => false })")
    page.goto("/settings/tokens")
    page.get_by_label("Name").fill("nightly")
    page.get_by_role("button", name="Create token").click()
    expect(page.get_by_role("heading", name="Your new token")).to_be_visible()
