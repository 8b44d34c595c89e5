"""People see and end their sessions, and every session expires."""

import re
from datetime import timedelta

import pytest
from django.contrib.sessions.models import Session
from django.db import connection
from django.test import Client
from django.test.utils import CaptureQueriesContext
from django.utils import timezone

from tests.team import browser
from webapp.accounts.models import SignedIn
from webapp.accounts.profile.services import set_password
from webapp.accounts.sessions import services as sessions
from webapp.accounts.sessions.browsers import browser_name
from webapp.accounts.sessions.time_outs import in_words
from webapp.core.models import AuditEntry
from workers import upkeep

pytestmark = pytest.mark.django_db
PASSWORD = "quartz violin meadow"
FIREFOX = "Mozilla/5.0 (X11; Linux x86_64; rv:140.0) Gecko/20100101 Firefox/140.0"
PHONE = "Mozilla/5.0 (iPhone; CPU iPhone OS 19_0 like Mac OS X) AppleWebKit/605.1.15 (KHTML, like Gecko) Version/19.0 Safari/604.1"


@pytest.fixture
def signed_in(team):
    """`signed_in(agent)`: a browser with a session from the sign-in page."""
    set_password(team.owner.user, PASSWORD)

    def come(agent: str = FIREFOX) -> Client:
        client = Client(headers={"user-agent": agent})
        client.post("/sign-in", {"email": team.owner.user.email, "password": PASSWORD})
        assert inside(client)
        return client

    return come


def inside(client: Client) -> bool:
    return client.get("/api/v1/me").status_code == 200


def row_of(client: Client) -> SignedIn:
    return SignedIn.objects.get(session_key=client.cookies["sessionid"].value)


def test_the_page_lists_where_one_is_signed_in(signed_in, team):
    here, _ = signed_in(), signed_in(PHONE)
    page = here.get("/settings/profile").content.decode()
    assert "Firefox on Linux" in page and "Safari on iPhone" in page and "127.0.0.1" in page
    assert page.count("this browser") == 1
    assert "Firefox on Linux" not in browser(team.annotator).get("/settings/profile").content.decode()


def test_one_browser_is_signed_out_and_the_others_stay(signed_in):
    here, phone, third = signed_in(), signed_in(PHONE), signed_in()
    here.post("/settings/second-factor/confirm", {"password": PASSWORD})
    here.post("/settings/sessions/end", {"session": row_of(phone).pk, "sure": "1"})
    assert [inside(each) for each in (here, phone, third)] == [True, False, True]
    assert AuditEntry.objects.filter(action="session.ended", detail={"sessions": 1}).exists()
    here.post("/settings/sessions/end", {"others": "1", "sure": "1"})
    assert inside(here) and not inside(third)


def test_nobody_ends_a_session_of_somebody_else(signed_in, team):
    owner, other = signed_in(), browser(team.annotator)
    for body in ({"session": row_of(owner).pk}, {"session": "x"}, {"others": "1"}, {}):
        other.post("/settings/sessions/end", body | {"sure": "1"})
    assert inside(owner) and inside(other)


def test_a_session_ends_when_nobody_uses_it(signed_in, settings):
    settings.SESSION_IDLE_HOURS = 2
    busy, idle = signed_in(), signed_in()
    for client, minutes in ((busy, 119), (idle, 121)):
        SignedIn.objects.filter(pk=row_of(client).pk).update(last_used_at=timezone.now() - timedelta(minutes=minutes))
    gone = idle.cookies["sessionid"].value
    assert inside(busy) and not inside(idle)
    assert not Session.objects.filter(session_key=gone).exists()
    assert timezone.now() - row_of(busy).last_used_at < timedelta(minutes=1)  # its use was written down


def test_a_session_ends_however_much_it_is_used(signed_in, settings):
    settings.SESSION_HOURS = 24
    client = signed_in()
    SignedIn.objects.update(created_at=timezone.now() - timedelta(hours=25), last_used_at=timezone.now())
    assert not inside(client)
    assert client.get("/settings/profile").headers["Location"].startswith("/sign-in")


def test_use_is_noted_once_a_minute(signed_in):
    client = signed_in()
    with CaptureQueriesContext(connection) as seen:
        inside(client)
    assert not [query for query in seen if re.match("INSERT|UPDATE", str(query["sql"]))]
    SignedIn.objects.update(last_used_at=timezone.now() - timedelta(minutes=2))
    inside(client)
    assert timezone.now() - row_of(client).last_used_at < timedelta(minutes=1)


def test_signing_out_and_a_new_password_leave_no_session_behind(signed_in, team):
    here, there = signed_in(), signed_in(PHONE)
    here.post("/settings/profile", {"current": PASSWORD, "new": "copper lantern orchid"})
    assert inside(here) and not inside(there)
    assert SignedIn.objects.get().session_key == here.cookies["sessionid"].value
    here.post("/sign-out")
    assert not SignedIn.objects.exists()


def test_a_session_from_before_is_listed_once_it_is_used(team):
    client = browser(team.owner)
    SignedIn.objects.all().delete()  # sessions of earlier versions have no such row
    assert inside(client)
    assert row_of(client).user == team.owner.user


@pytest.mark.parametrize(
    ("agent", "name"),
    [
        (FIREFOX, "Firefox on Linux"),
        (PHONE, "Safari on iPhone"),
        ("curl/8", "curl/8"),
        ("", "an unknown browser"),
    ],
)
def test_browsers_are_named_as_people_know_them(agent, name):
    assert browser_name(agent) == name


def test_time_outs_are_told_in_words():
    assert [in_words(timedelta(hours=hours)) for hours in (168, 24, 36, 1, 0.5)] == [
        "7 days",
        "1 day",
        "36 hours",
        "1 hour",
        "30 minutes",
    ]


def test_sessions_past_their_end_are_cleared_in_batches_and_others_stay(signed_in, monkeypatch):
    monkeypatch.setattr(sessions, "CLEARED_AT_ONCE", 2)
    stays, gone = signed_in(), [signed_in() for _ in range(5)]
    keys = [each.cookies["sessionid"].value for each in gone]
    Session.objects.filter(session_key__in=keys).update(expire_date=timezone.now() - timedelta(seconds=1))
    with CaptureQueriesContext(connection) as seen:
        upkeep.clear_sessions()
    assert len([query for query in seen if 'DELETE FROM "django_session"' in query["sql"]]) == 3
    assert [row.session_key for row in Session.objects.all()] == [stays.cookies["sessionid"].value]
    assert SignedIn.objects.get() == row_of(stays) and inside(stays)


def test_a_password_that_was_stored_without_its_spaces_opens_at_sign_in_only(signed_in, team):
    email, typed = team.owner.user.email, f" {PASSWORD} "
    client = signed_in()
    assert Client().post("/sign-in", {"email": email, "password": typed}).status_code == 302
    assert client.post("/settings/profile", {"current": typed, "new": "copper lantern orchid"}).status_code == 422
    set_password(team.owner.user, typed)
    assert Client().post("/sign-in", {"email": email, "password": PASSWORD}).status_code == 422
    assert Client().post("/sign-in", {"email": email, "password": typed}).status_code == 302
    assert Client().post("/sign-in", {"email": email, "password": "   "}).status_code == 422
