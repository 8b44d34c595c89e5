"""A second factor is asked for at every sign-in, guessing is stopped, and a workspace that requires a factor is closed without one."""

import base64
import hmac
import io
import time
from dataclasses import dataclass

import pytest
from allauth.account.internal.userkit import user_id_to_str
from allauth.mfa.models import Authenticator
from django.contrib.auth import SESSION_KEY
from django.contrib.auth.hashers import make_password
from django.core.management import call_command
from django.test import Client

from tests.team import ApiClient, browser
from webapp.accounts.models import User
from webapp.accounts.profile.services import set_password
from webapp.accounts.sign_in.services import create_sign_in_link
from webapp.accounts.workspaces.services import create_workspace
from webapp.core.models import AuditEntry
from webapp.identity import recovery_codes, second_factor

pytestmark = pytest.mark.django_db
PASSWORD = "a long enough passphrase"


@dataclass
class App:
    """An authenticator app: RFC 6238 with SHA-1, six digits, half minutes."""

    secret: str

    def code(self, later: int = 0) -> str:
        moment = int(time.time()) // 30 + later
        digest = hmac.digest(base64.b32decode(self.secret), moment.to_bytes(8, "big"), "sha1")
        place = digest[-1] & 15
        return f"{(int.from_bytes(digest[place : place + 4], 'big') & 0x7FFFFFFF) % 1_000_000:06d}"


def signed_in(client: Client) -> bool:
    return SESSION_KEY in client.session


def set_up(membership) -> tuple[Client, App]:
    """Sets up an authenticator app through the pages, like a person with a password."""
    if not membership.user.check_password(PASSWORD):
        set_password(membership.user, PASSWORD)
    client = browser(membership)
    page = client.get("/settings/second-factor/app")
    assert page.status_code == 302 and "/confirm" in page["Location"]  # a person who found an open browser cannot do it
    page = client.post(page["Location"], {"password": PASSWORD}, follow=True)
    app = App(page.context["form"].secret)
    done = client.post("/settings/second-factor/app", {"code": app.code()})
    assert done.status_code == 302
    return client, app


def require_second_factor(team) -> None:
    team.workspace.asks_second_factor = True
    team.workspace.save()


def by_password(client: Client, email: str):
    return client.post("/sign-in", {"email": email, "password": PASSWORD, "next": "/datasets"})


def test_the_password_alone_opens_no_session(team, client):
    _, app = set_up(team.annotator)
    asked = by_password(client, team.annotator.user.email)
    assert asked["Location"] == "/sign-in/second-factor" and not signed_in(client)
    assert client.get("/datasets").status_code == 302 and client.get("/api/v1/me").status_code == 401
    assert b"authenticator app" in client.get(asked["Location"]).content
    wrong = client.post("/sign-in/second-factor", {"code": "000000"})
    assert wrong.status_code == 200 and not signed_in(client)
    right = client.post("/sign-in/second-factor", {"code": app.code(1)})
    assert right["Location"] == "/datasets" and signed_in(client)
    assert client.get("/").status_code == 200


def test_a_sign_in_link_asks_as_well(team, client):
    set_up(team.annotator)
    secret = create_sign_in_link(team.annotator.user)
    assert client.post(f"/sign-in/link/{secret}")["Location"] == "/sign-in/second-factor"
    assert not signed_in(client)


def test_a_code_works_once(team, client):
    _, app = set_up(team.annotator)
    code = app.code(1)
    by_password(client, team.annotator.user.email)
    client.post("/sign-in/second-factor", {"code": code})
    other = Client()
    by_password(other, team.annotator.user.email)
    assert other.post("/sign-in/second-factor", {"code": code}).status_code == 200
    assert not signed_in(other)


def test_guessing_is_stopped(team, client):
    _, app = set_up(team.annotator)
    by_password(client, team.annotator.user.email)
    for _ in range(12):
        client.post("/sign-in/second-factor", {"code": "123456"})
    client.post("/sign-in/second-factor", {"code": app.code(1)})
    assert not signed_in(client)


def opens(membership, code: str) -> bool:
    client = Client()
    by_password(client, membership.user.email)
    client.post("/sign-in/second-factor", {"code": code})
    return signed_in(client)


def test_a_recovery_code_opens_once(team):
    home, _ = set_up(team.annotator)
    first, second, *_ = home.get("/settings/second-factor/codes").context["codes"].split("\n")
    assert opens(team.annotator, first) and not opens(team.annotator, first)
    assert opens(team.annotator, second.replace("-", " ").upper())  # in the form in which people may type it
    assert "8 of 10 are left" in home.get("/settings/second-factor/codes").content.decode()


def test_recovery_codes_are_told_once_and_kept_as_hashes(team):
    home, _ = set_up(team.annotator)
    row = Authenticator.objects.get(type="recovery_codes")
    told = home.get("/settings/second-factor/codes")
    codes = told.context["codes"].split("\n")
    assert len(set(codes)) == 10 and all(code in told.content.decode() for code in codes)
    assert all(len(code.replace("-", "")) * 5 >= 112 for code in codes)  # long enough for a plain hash
    assert set(row.data) == {"hashes"} and not any(code in str(row.data) for code in codes)
    again = home.get("/settings/second-factor/codes").content.decode()
    assert "10 of 10 are left" in again and not any(code in again for code in codes)
    home.post("/settings/second-factor/codes/new")
    others = home.get("/settings/second-factor/codes").context["codes"].split("\n")
    assert not set(codes) & set(others) and not opens(team.annotator, codes[0]) and opens(team.annotator, others[0])


def from_before(user: User) -> list[str]:
    """Codes as they were made before 24 November 2026. The first is used."""
    Authenticator.objects.filter(user=user, type="recovery_codes").delete()
    row = recovery_codes.Former.activate(user)  # type: ignore[attr-defined]
    codes = row.generate_codes()
    assert row.validate_code(codes[0])
    return codes


def test_codes_from_before_go_on_working_and_are_hashed(team):
    set_up(team.annotator)
    used, now, later, *_ = from_before(team.annotator.user)
    Authenticator.objects.create(user=team.owner.user, type="recovery_codes", data={"seed": "lost", "used_mask": 0})
    assert not opens(team.annotator, used) and opens(team.annotator, now)
    assert [recovery_codes.hash_former(), recovery_codes.hash_former()] == [
        1,
        0,
    ]  # a code that no key opens does not stop the others
    row = Authenticator.objects.get(user=team.annotator.user, type="recovery_codes")
    assert set(row.data) == {"hashes"} and len(row.data["hashes"]) == 8 and later not in str(row.data)
    assert not opens(team.annotator, used) and not opens(team.annotator, now)
    assert opens(team.annotator, later) and not opens(team.annotator, later)


def test_hashing_takes_nothing_from_whoever_uses_a_code_meanwhile(team, monkeypatch):
    set_up(team.annotator)
    _, code, *_ = from_before(team.annotator.user)
    hashed = make_password

    def meanwhile(text: str) -> str:
        monkeypatch.setattr(recovery_codes, "make_password", hashed)
        assert opens(team.annotator, code)
        return hashed(text)

    monkeypatch.setattr(recovery_codes, "make_password", meanwhile)
    assert [recovery_codes.hash_former(), recovery_codes.hash_former()] == [0, 1]
    assert not opens(team.annotator, code)


def test_secrets_are_encrypted_where_they_lie(team):
    _, app = set_up(team.annotator)
    stored = str(list(Authenticator.objects.values_list("data", flat=True)))
    assert app.secret not in stored


def test_a_workspace_that_asks_for_one_is_closed_without(team):
    home, script = browser(team.annotator), ApiClient(team.annotator)
    require_second_factor(team)
    assert home.get("/")["Location"] == "/settings/second-factor"
    assert home.get("/projects")["Location"] == "/settings/second-factor"
    assert home.get("/api/v1/projects/mine").json()["error"]["code"] == "second_factor"
    assert home.get("/settings/profile").status_code == 200
    assert b"asks its people for a second factor" in home.get("/settings/second-factor").content
    assert script.get("/projects/mine").status_code == 200  # a token is not a session
    home, _ = set_up(team.annotator)
    assert home.get("/").status_code == 200


def test_a_session_from_before_the_factor_ends_when_it_is_set_up(team, django_capture_on_commit_callbacks):
    """A thief with the password could not come in. The owner's factor must not let the thief's session in."""
    set_password(team.annotator.user, PASSWORD)
    thief = Client()
    by_password(thief, team.annotator.user.email)
    require_second_factor(team)
    assert thief.get("/")["Location"] == "/settings/second-factor"
    with django_capture_on_commit_callbacks(execute=True):
        home, _ = set_up(team.annotator)
    assert home.get("/").status_code == 200
    assert "/sign-in" in thief.get("/")["Location"]
    said = set(AuditEntry.objects.filter(actor=team.annotator.user).values_list("action", flat=True))
    assert {"second_factor.totp_added", "second_factor.recovery_codes_added"} <= said


def test_the_installation_is_closed_as_soon_as_one_workspace_asks(team):
    User.objects.filter(pk=team.owner.user_id).update(is_administrator=True)
    require_second_factor(team)
    home = browser(team.owner)
    home.post("/workspaces", {"name": "Mine"})
    assert not team.owner.user.memberships.exclude(workspace=team.workspace).exists()
    elsewhere = create_workspace("Mine", team.owner.user)
    home = browser(elsewhere)
    assert home.get("/").status_code == 200
    assert home.get("/installation")["Location"] == "/settings/second-factor"
    home, _ = set_up(elsewhere)
    assert home.get("/installation").status_code == 200


@pytest.mark.parametrize(("whose", "closed"), [("researcher", True), ("annotator", False)])
def test_the_company_vouches_for_whom_it_let_in_alone(team, whose, closed):
    """In one browser, one person may have begun to sign in by the company, and another person may have signed in."""
    require_second_factor(team)
    home = browser(team.annotator)
    session = home.session
    session["account_authentication_methods"] = [{"method": "socialaccount", "at": time.time(), "second_factor": True}]
    session["account_authentication_methods_user"] = user_id_to_str(getattr(team, whose).user)
    session.save()
    assert (home.get("/").status_code == 302) is closed


def test_the_last_factor_stays_while_a_workspace_asks(team):
    home, _ = set_up(team.annotator)
    require_second_factor(team)
    home.post("/settings/second-factor/app/off")
    assert second_factor.authenticators_of(team.annotator.user_id).exists()
    second_factor.ask(team.owner, False)
    home.post("/settings/second-factor/app/off")
    assert not second_factor.authenticators_of(team.annotator.user_id).exists()


def test_owners_ask_for_it_by_the_page_and_others_cannot(team):
    assert browser(team.researcher).post("/settings/sign-in/second-factor", {"ask": "yes"}).status_code == 403
    owner = browser(team.owner)
    refused = owner.post("/settings/sign-in/second-factor", {"ask": "yes"}, follow=True)
    assert b"Set up your own second factor first" in refused.content  # otherwise the owner would lock themselves out
    owner, _ = set_up(team.owner)
    owner.post("/settings/sign-in/second-factor", {"ask": "yes"})
    team.workspace.refresh_from_db()
    assert team.workspace.asks_second_factor
    assert AuditEntry.objects.filter(action="workspace.second_factor", actor=team.owner.user).exists()
    assert b"no second factor" in owner.get("/settings/sign-in").content


def test_whoever_runs_the_server_takes_it_off_somebody_who_lost_it(team, client):
    set_up(team.annotator)
    out = io.StringIO()
    call_command("second_factor", team.annotator.user.email.upper(), stdout=out)
    assert "no second factor any more" in out.getvalue()
    by_password(client, team.annotator.user.email)
    assert signed_in(client)
    assert AuditEntry.objects.filter(action="second_factor.forgotten").exists()


def test_a_new_secret_key_keeps_second_factors(team, client, settings):
    _, app = set_up(team.annotator)
    former, settings.SECRET_KEY, settings.SECRET_KEY_FALLBACKS = settings.SECRET_KEY, "k" * 40, [settings.SECRET_KEY]
    out = io.StringIO()
    call_command("reencrypt", stdout=out)
    assert "mfa.authenticator.data: 1 encrypted again" in out.getvalue()  # the secret of the app
    settings.SECRET_KEY_FALLBACKS = []
    by_password(client, team.annotator.user.email)
    client.post("/sign-in/second-factor", {"code": app.code(1)})
    assert signed_in(client)
    settings.SECRET_KEY = former
    other = Client()
    by_password(other, team.annotator.user.email)
    assert b"cannot read your second factor" in other.post("/sign-in/second-factor", {"code": app.code(1)}).content
