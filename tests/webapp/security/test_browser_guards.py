"""The headers with which every answer restricts browsers, and the attributes of cookies."""

import os
import re
import subprocess
import sys

import pytest
from django.conf import settings as configured
from django.test import Client

from tests.team import browser
from tests.webapp.security.test_bodies import GB, Sender, nobody, scope
from webapp.accounts.profile.services import set_password
from webapp.core.requests.handler import ThreadedHandler
from webapp.core.storage.archive import ascii_name
from webapp.datasets.ingest.uploads import safe_name

PASSWORD = "a long enough passphrase"


def settings_where(public_url: str, *names: str) -> list[str]:
    """The settings of a server with this PUBLIC_URL."""
    program = f"from django.conf import settings\nfor name in {names!r}: print(getattr(settings, name))"
    env = os.environ | {"PUBLIC_URL": public_url, "DJANGO_SETTINGS_MODULE": "webapp.settings"}
    done = subprocess.run(
        [sys.executable, "-c", program], env=env, cwd=configured.BASE_DIR, capture_output=True, text=True, check=True
    )
    return done.stdout.split()


@pytest.mark.django_db
def test_cookies_over_https_are_bound_to_the_host(team, settings):
    names = ("SESSION_COOKIE_NAME", "CSRF_COOKIE_NAME", "SESSION_COOKIE_SECURE", "CSRF_COOKIE_SECURE")
    assert settings_where("http://t.example.org", *names) == ["sessionid", "csrftoken", "False", "False"]
    over_https = settings_where("https://t.example.org", *names)
    assert over_https == ["__Host-sessionid", "__Host-csrftoken", "True", "True"]
    settings.SESSION_COOKIE_NAME, settings.CSRF_COOKIE_NAME = over_https[:2]
    settings.SESSION_COOKIE_SECURE = settings.CSRF_COOKIE_SECURE = True
    set_password(team.owner.user, PASSWORD)
    client = Client()
    client.get("/sign-in", secure=True)
    client.post("/sign-in", {"email": team.owner.user.email, "password": PASSWORD}, secure=True)
    assert set(client.cookies) == {"__Host-sessionid", "__Host-csrftoken"}
    for name, cookie in client.cookies.items():
        assert (cookie["path"], cookie["domain"], cookie["secure"], cookie["samesite"]) == ("/", "", True, "Lax"), name
    assert client.cookies["__Host-sessionid"]["httponly"] is True
    assert client.get("/api/v1/me", secure=True).status_code == 200


PATHS = ("/", "/sign-in", "/datasets", "/settings/profile", "/nowhere", "/api/v1/me", "/api/v1/nowhere", "/api/v1/docs",
         "/static/js/http.js", "/static/", "/healthz", "/search.json", "/settings/audit.jsonl", "/runs/%00", "/metrics")  # fmt: skip


@pytest.mark.django_db
@pytest.mark.parametrize("who", ["owner", None])
def test_every_answer_carries_the_guards_of_browsers(team, who):
    client = browser(team.owner) if who else Client()
    for path in PATHS:
        answer = client.get(path, headers={"origin": "https://elsewhere.example"})
        assert answer["X-Content-Type-Options"] == "nosniff", path
        assert answer["Referrer-Policy"] == "same-origin", path
        assert "Access-Control-Allow-Origin" not in answer, path
        policy = answer["Content-Security-Policy"]
        for part in (
            "default-src 'self'",
            "script-src 'self';",
            "object-src 'none'",
            "base-uri 'none'",
            "frame-ancestors 'none'",
        ):
            assert part in f"{policy};", (path, part)
        kind = answer.get("Content-Type", "")
        assert not kind.startswith("text/") or "charset" in kind, (path, kind)
        if not path.startswith(("/static/", "/healthz", "/runs/%00", "/metrics")):
            assert "no-store" in answer["Cache-Control"], path


async def test_a_refused_body_carries_the_guards_as_well(monkeypatch):
    """The request is refused before any middleware sees it."""
    monkeypatch.setattr(
        "webapp.core.requests.handler.HSTS", {"Strict-Transport-Security": "max-age=1; includeSubDomains"}
    )
    for scheme, promised in (("http", False), ("https", True)):
        sent = []

        async def send(message, sent=sent):
            sent.append(message)

        await ThreadedHandler(1, nobody).handle(scope(GB) | {"scheme": scheme}, Sender(), send)
        headers = dict(sent[0]["headers"])
        assert headers[b"X-Content-Type-Options"] == b"nosniff" and headers[b"Cache-Control"] == b"no-store"
        assert b"frame-ancestors 'none'" in headers[b"Content-Security-Policy"]
        assert (b"Strict-Transport-Security" in headers) == promised


@pytest.mark.django_db
@pytest.mark.parametrize("method", ["TRACE", "TRACK", "PROPFIND"])
def test_trace_and_unknown_methods_are_refused(team, method):
    for client in (Client(), browser(team.owner)):
        for path in ("/", "/datasets", "/api/v1/me", "/static/js/http.js"):
            answer = client.generic(method, path, headers={"x-mine": "secret"})
            assert answer.status_code == 405 and b"secret" not in answer.content, path


@pytest.mark.django_db
def test_folders_of_static_files_are_not_listed(client):
    for path in ("/static/", "/static/js/", "/static/vendor/", "/static/../settings.py", "/static/%2e%2e/settings.py"):
        answer = client.get(path)
        assert answer.status_code in (302, 404) and b"http.js" not in answer.content, path


@pytest.mark.django_db
def test_the_way_out_is_on_every_page(team):
    for who in (team.owner, team.researcher, team.reviewer, team.annotator):
        page = browser(who).get("/settings/profile").content.decode()
        assert re.search(r'<form method="post" action="/sign-out">.*?Sign out</button>', page, re.S), who.role


@pytest.mark.django_db
def test_passwords_are_hidden_and_may_be_pasted(team, client):
    set_password(team.owner.user, PASSWORD)
    pages = (client.get("/sign-in"), browser(team.owner).get("/settings/profile"))
    fields = [field for page in pages for field in re.findall(r"<input[^>]*password[^>]*>", page.content.decode())]
    assert len(fields) == 3
    for field in fields:
        assert 'type="password"' in field and re.search(r'autocomplete="(current|new)-password"', field)
        assert "onpaste" not in field and "readonly" not in field


def test_debug_is_off_unless_somebody_says_so():
    assert settings_where("https://t.example.org", "DEBUG") == ["False"]


def test_passwords_are_hashed_with_argon2():
    names = settings_where("https://t.example.org", "PASSWORD_HASHERS")
    assert names == ["['django.contrib.auth.hashers.Argon2PasswordHasher']"]


@pytest.mark.parametrize(
    "named", ['a"; x=1\r\nSet-Cookie: a=b', "../../etc/passwd", "....", "naïve 報告.zip", "", "a/b\\c\0d"]
)
def test_safe_names_hold_nothing_that_ends_a_header(named):
    for safe in (ascii_name(named), safe_name(named)):
        assert re.fullmatch(r"[A-Za-z0-9_-][A-Za-z0-9._-]*", safe), safe
