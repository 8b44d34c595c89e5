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
