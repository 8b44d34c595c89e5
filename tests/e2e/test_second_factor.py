"""A passkey in a browser: it is added on the page, asked for after the password, and used instead of the password."""

import pytest
from playwright.sync_api import expect

from webapp.accounts.profile.services import set_password

pytestmark = [pytest.mark.browser, pytest.mark.django_db(transaction=True)]
PASSWORD = "a long enough passphrase"
DEVICE = {
    "protocol": "ctap2",
    "transport": "internal",
    "hasResidentKey": True,
    "hasUserVerification": True,
    "isUserVerified": True,
    "automaticPresenceSimulation": True,
}


def test_a_passkey_is_added_asked_for_and_enough(open_page, as_owner, server, team):
    user = team.owner.user
    set_password(user, PASSWORD)
    page = open_page(as_owner)
    page.context.clear_cookies()
    device = page.context.new_cdp_session(page)
    device.send("WebAuthn.enable")
    device.send("WebAuthn.addVirtualAuthenticator", {"options": DEVICE})
    home = server.url.replace("127.0.0.1", "localhost")  # passkeys work for host names, not for addresses

    def by_password(path: str = "") -> None:
        page.goto(f"{home}/sign-in?next={path or '/'}")
        page.get_by_label("Email").fill(user.email)
        page.get_by_label("Password").fill(PASSWORD)
        page.get_by_role("button", name="Sign in", exact=True).click()

    by_password("/settings/second-factor")
    page.get_by_role("link", name="Add a key").click()
    page.get_by_label("Password").fill(PASSWORD)
    page.get_by_role("button", name="Confirm").click()
    page.get_by_label("Passwordless").check()
    page.get_by_role("button", name="Add the key").click()
    expect(page.get_by_role("heading", name="Recovery codes")).to_be_visible()
    page.goto(f"{home}/settings/second-factor")
    expect(page.get_by_role("cell", name="Passkey")).to_be_visible()

    page.context.clear_cookies()
    by_password()
    expect(page.get_by_role("heading", name="Second factor")).to_be_visible()
    page.get_by_role("button", name="Use a passkey or security key").click()
    page.wait_for_url(f"{home}/")

    page.context.clear_cookies()
    page.goto(f"{home}/sign-in?next=/settings/profile")
    page.get_by_role("button", name="Sign in with a passkey").click()
    page.wait_for_url(f"{home}/settings/profile")
