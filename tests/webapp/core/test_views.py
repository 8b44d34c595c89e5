"""Pages that people see after an error."""

import re

import pytest
from django.contrib.staticfiles import finders
from django.db import OperationalError
from django.test import Client


def test_a_wrong_address_says_what_to_set(db):
    answer = Client().get("/", headers={"host": "elsewhere.example.org"})
    assert answer.status_code == 400
    assert "PUBLIC_URL" in answer.content.decode()


@pytest.mark.django_db
def test_an_error_page_has_its_style_and_its_id(team, as_owner):
    answer = as_owner.get("/runs/999")
    page = answer.content.decode()
    assert answer.status_code == 404 and answer.headers["X-Request-Id"] in page
    wanted = re.findall(r'href="/static/(css/[^"]+)"', page)
    assert wanted and all(finders.find(path) for path in wanted)


def test_while_the_database_is_away_the_page_comes_back_by_itself(monkeypatch):
    def away(*args):
        raise OperationalError("connection refused")

    monkeypatch.setattr("webapp.accounts.authentication.middleware._membership", away)
    monkeypatch.setattr("django.contrib.auth.middleware.get_user", away)
    client = Client(raise_request_exception=False)
    answer = client.get("/")
    assert answer.status_code == 503 and answer.headers["Refresh"] == "5"
