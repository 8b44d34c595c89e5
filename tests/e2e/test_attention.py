"""A page that loads news by itself does not keep a session open. A person who uses the page does."""

import time
from datetime import timedelta

import pytest
from django.utils import timezone

from tests.timeouts import SECONDS
from webapp.accounts.models import SignedIn
from webapp.personal_data import services

pytestmark = [pytest.mark.browser, pytest.mark.django_db(transaction=True)]


def test_polls_are_no_use_until_somebody_touches_the_page(open_page, as_owner, server, team):
    services.ask(team.owner.user)  # nobody writes to the page: it asks the server again and again
    page = open_page(as_owner)
    asked = []
    page.on("request", lambda request: asked.append(request) if request.headers.get("hx-request") else None)
    page.goto("/settings/data")
    long_ago = timezone.now() - timedelta(minutes=5)
    SignedIn.objects.filter(user=team.owner.user).update(last_used_at=long_ago)

    def polled(count: int) -> None:
        deadline = time.monotonic() + SECONDS
        while len(asked) < count and time.monotonic() < deadline:
            page.wait_for_timeout(100)
        asked[count - 1].response()

    def last_used():
        return SignedIn.objects.filter(user=team.owner.user).order_by("-last_used_at").first().last_used_at

    polled(1)
    assert asked[0].headers["x-unattended"] == "1" and last_used() == long_ago
    page.keyboard.press("Shift")
    polled(len(asked) + 1)
    assert "x-unattended" not in asked[-1].headers and last_used() > long_ago
