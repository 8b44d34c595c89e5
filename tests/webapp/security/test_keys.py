"""Tokens and links expire, cannot make further ones, and do not appear in the log."""

import logging
from datetime import timedelta

import pytest
from axes.models import AccessAttempt, AccessLog
from django.test import Client
from django.utils import timezone

from tests.team import ApiClient, browser
from webapp.accounts.models import ApiToken
from webapp.accounts.profile.services import set_password
from webapp.accounts.sign_in.services import create_sign_in_link
from webapp.accounts.tokens.services import TOKEN_DAYS
from webapp.core.monitoring.logs import NoSecrets, Refusals, hidden

pytestmark = pytest.mark.django_db
SECRET = "Xb3-_kQ9"


def test_a_token_ends_on_its_day(team):
    script = ApiClient(team.owner)
    token = ApiToken.objects.get()
    assert token.expires_at - timezone.now() > timedelta(days=TOKEN_DAYS - 1)
    assert script.get("/me").status_code == 200
    ApiToken.objects.update(expires_at=timezone.now())
    assert script.get("/me").status_code == 401


def test_a_token_makes_no_tokens(team):
    answer = ApiClient(team.owner).post("/tokens", {"name": "child"})
    assert (answer.status_code, answer.json()["error"]["code"]) == (403, "token_by_token")
    assert ApiToken.objects.count() == 1


def test_a_person_chooses_how_long_a_token_lasts(team):
    page = browser(team.owner)
    assert page.post("/settings/tokens", {"name": "nightly", "scope": "read", "lasts": "0"}).status_code == 200
    assert ApiToken.objects.get().expires_at is None
    assert b"when revoked" in page.get("/settings/tokens").content
    answer = page.post("/api/v1/tokens", {"name": "x", "days": 9999}, content_type="application/json")
    assert (answer.status_code, answer.json()["error"]["fields"][0]["path"]) == (422, "days")


def test_a_new_password_spends_the_sign_in_links(team):
    secret = create_sign_in_link(team.owner.user)
    set_password(team.owner.user, "correct horse battery")
    assert Client().post(f"/sign-in/link/{secret}").status_code == 410


def test_a_link_asks_before_it_takes_a_session_over(team):
    path = f"/sign-in/link/{create_sign_in_link(team.owner.user)}"
    shown = browser(team.annotator).get(path).content
    assert b"anna@example.org" in shown and b"data-submit-at-once" not in shown
    assert b"data-submit-at-once" in Client().get(path).content


@pytest.mark.parametrize("where", ["sign-in/link", "invite", "join", "shared"])
def test_no_key_of_a_link_is_in_the_log(where):
    record = logging.makeLogRecord({"msg": "Not Found: %s?x=1", "args": (f"/{where}/{SECRET}",)})
    assert NoSecrets().filter(record)
    assert record.getMessage() == f"Not Found: /{where}/...?x=1"


def test_no_key_of_a_link_is_in_a_traceback():
    try:
        raise ValueError(f"/join/{SECRET}")
    except ValueError as error:
        record = logging.makeLogRecord({"msg": "failed", "exc_info": (ValueError, error, error.__traceback__)})
    NoSecrets().filter(record)
    assert SECRET not in logging.Formatter().format(record)
    assert hidden("/datasets/join") == "/datasets/join"


def test_signing_in_leaves_no_key_in_the_database(team):
    secret = create_sign_in_link(team.owner.user)
    Client().post(f"/sign-in/link/{secret}")
    assert not AccessLog.objects.exists()
    Client().post(f"/sign-in?next=/join/{SECRET}", {"email": "ada@example.org", "password": "wrong"})
    attempt = AccessAttempt.objects.get()
    assert SECRET not in attempt.get_data + attempt.post_data + attempt.path_info


@pytest.mark.parametrize(("level", "kept"), [(logging.WARNING, False), (logging.ERROR, True)])
def test_a_refused_request_is_one_line_and_a_failure_keeps_its_traceback(level, kept):
    try:
        raise ValueError("no")
    except ValueError as error:
        about = {"name": "django.request", "levelno": level, "msg": "Forbidden", "exc_info": (ValueError, error, None)}
    record = logging.makeLogRecord(about)
    Refusals().filter(record)
    assert ("ValueError" in logging.Formatter().format(record)) == kept
