"""SECRET_KEY can be changed without losing what it sealed: former keys open it until it is encrypted again."""

from io import StringIO

import pytest
from django.core.management import CommandError, call_command

from tests.team import browser
from webapp import environment
from webapp.core import encryption
from webapp.experiments.lifecycle import tokens
from webapp.inference.models import Endpoint
from webapp.webhooks.models import Webhook

pytestmark = pytest.mark.django_db
NEW = "the key that came after the first one did"


@pytest.fixture
def stored(team) -> list[Endpoint | Webhook]:
    """Two endpoints with keys, one without, and a webhook. All were made before the change."""
    endpoints = [
        Endpoint.objects.create(
            workspace=team.workspace, name=name, kind="chat", secret=encryption.seal(name) if name else ""
        )
        for name in ("one", "two", "")
    ]
    hook = Webhook.objects.create(
        workspace=team.workspace, url="https://x.example", events=[], secret=encryption.seal("hook")
    )
    return [*endpoints[:2], hook]


@pytest.fixture
def changed(settings, stored) -> str:
    """The key was changed, and the former one is named in the settings."""
    former = settings.SECRET_KEY
    settings.SECRET_KEY, settings.SECRET_KEY_FALLBACKS = NEW, [former]
    return former


def secrets(rows) -> list[str]:
    for row in rows:
        row.refresh_from_db()
    return [encryption.unseal(row.secret) for row in rows]


def reencrypt(*options: str) -> str:
    out = StringIO()
    call_command("reencrypt", *options, stdout=out)
    return out.getvalue()


def test_a_former_key_opens_what_it_sealed_as_long_as_it_is_named(stored, changed, settings):
    assert secrets(stored) == ["one", "two", "hook"]
    settings.SECRET_KEY_FALLBACKS = []
    with pytest.raises(encryption.Unreadable):
        encryption.unseal(stored[0].secret)


def test_secrets_are_sealed_anew_and_counted(stored, changed, settings):
    assert "inference.endpoint.secret: 2 under former keys, 0 already under" in reencrypt("--check")
    said = reencrypt()
    assert (
        "inference.endpoint.secret: 2 encrypted again, 0 already under the present key, 0 that no given key decrypts"
        in said
    )
    assert "webhooks.webhook.secret: 1 encrypted again" in said and "you can empty SECRET_KEY_FALLBACKS" in said
    settings.SECRET_KEY_FALLBACKS = []
    assert secrets(stored) == ["one", "two", "hook"]
    assert "inference.endpoint.secret: 0 encrypted again, 2 already under the present key" in reencrypt()


def test_it_goes_on_where_it_was_broken_off(stored, changed, settings, monkeypatch):
    seal = encryption.seal

    def dies(secret: str) -> str:
        if secret == "two":
            raise KeyboardInterrupt
        return seal(secret)

    monkeypatch.setattr(encryption, "seal", dies)
    with pytest.raises(KeyboardInterrupt):
        reencrypt()
    monkeypatch.setattr(encryption, "seal", seal)
    assert "inference.endpoint.secret: 1 encrypted again, 1 already under the present key" in reencrypt()
    settings.SECRET_KEY_FALLBACKS = []
    assert secrets(stored) == ["one", "two", "hook"]


def test_a_secret_that_somebody_stores_at_this_moment_stays(stored, changed, settings, monkeypatch):
    """The row changes between the reading and the writing. The old value must not come back."""
    seal, row = encryption.seal, stored[0]

    def slow(secret: str) -> str:
        if secret == "one":
            Endpoint.objects.filter(pk=row.pk).update(secret=seal("newer"))
        return seal(secret)

    monkeypatch.setattr(encryption, "seal", slow)
    reencrypt()
    settings.SECRET_KEY_FALLBACKS = []
    assert secrets(stored) == ["newer", "two", "hook"]


def test_what_no_key_opens_is_counted_and_left_and_the_rest_is_done(stored, changed, settings):
    Endpoint.objects.filter(pk=stored[0].pk).update(secret="gAAAAA of another server")
    with pytest.raises(CommandError, match="No given key decrypts 1 secrets"):
        reencrypt()
    settings.SECRET_KEY_FALLBACKS = []
    assert secrets(stored[1:]) == ["two", "hook"]


def test_people_stay_signed_in_while_the_former_key_is_named(team, settings):
    page = browser(team.owner)
    former, settings.SECRET_KEY = settings.SECRET_KEY, NEW
    settings.SECRET_KEY_FALLBACKS = [former]
    assert page.get("/settings/profile").status_code == 200
    settings.SECRET_KEY_FALLBACKS = []
    assert page.get("/settings/profile").status_code == 200  # the session was signed again
    settings.SECRET_KEY = former
    assert page.get("/settings/profile").status_code == 302


def test_a_run_keeps_its_token(run, settings):
    before = tokens.run_token(run)
    former, settings.SECRET_KEY = settings.SECRET_KEY, NEW
    assert tokens.run_token(run) != before
    settings.SECRET_KEY_FALLBACKS = [former]
    assert tokens.run_token(run) == before and tokens.is_current_token(before, run)


def test_a_former_key_that_is_too_short_stops_start_up_and_is_not_told(monkeypatch, capsys):
    monkeypatch.setenv("SECRET_KEY_FALLBACKS", "short-and-secret")
    with pytest.raises(SystemExit):
        environment.read()
    said = capsys.readouterr().err
    assert "SECRET_KEY_FALLBACKS" in said and "short-and-secret" not in said
