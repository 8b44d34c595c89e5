"""The browser tests rely on this: an action on a page waits until the page can react."""

import time

import pytest

pytestmark = pytest.mark.browser


@pytest.mark.parametrize("act", ["press", "click"])
def test_an_action_waits_for_the_modules_of_the_page(open_page, as_researcher, act):
    """A page with a slow script. Like after a link, the next action does not wait for `load`."""
    page = open_page(as_researcher)

    def late(route) -> None:
        time.sleep(0.5)
        route.continue_()

    page.route("**/palette*.js", late)
    page.goto("/datasets", wait_until="commit")
    button = page.locator(".rail-search")
    button.press("Enter") if act == "press" else button.click()
    page.locator("dialog[open]").wait_for()
