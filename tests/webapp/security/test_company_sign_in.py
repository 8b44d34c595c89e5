"""Sign-in by an OpenID provider, which runs beside the tests: who can sign in, as whom, and which roles their groups give."""

import json
import time
from base64 import urlsafe_b64decode, urlsafe_b64encode
from types import SimpleNamespace
from typing import Any
from urllib.parse import parse_qs, urlsplit

import httpx
import pytest
from allauth.core.internal.deferred import jwt
from allauth.mfa.models import Authenticator
from allauth.socialaccount.models import SocialToken
from allauth.socialaccount.providers.oauth2.client import OAuth2Client, OAuth2Error
from cryptography.hazmat.primitives.asymmetric import rsa
from django.conf import settings as configured
from django.contrib.auth import SESSION_KEY
from django.test import Client
from oidc_provider_mock import run_server_in_thread

from tests.team import ApiClient, browser
from webapp.accounts.addresses import services as addresses
from webapp.accounts.members.services import change_role, remove_member
from webapp.accounts.models import Membership, Proof, Role, User
from webapp.accounts.profile.services import set_password
from webapp.accounts.sign_in.services import create_sign_in_link
from webapp.core.models import AuditEntry
from webapp.identity import groups
from webapp.identity.adapters import CompanyAdapter
from webapp.identity.company import asked_for_two
from webapp.identity.models import GroupRole
from webapp.identity.provider import Company

pytestmark = pytest.mark.django_db
PASSWORD = "a long enough passphrase"


class Provider:
    """The company's directory: its answer about each person, and the person's way through its page."""

    def __init__(self, url: str) -> None:
        self.url = url

    def says(self, person: str, **claims: object) -> None:
        httpx.put(f"{self.url}/users/{person}", json={"sub": person, **claims}).raise_for_status()

    def sign_in(self, client: Client, person: str, then: str = "/") -> object:
        """The way of a browser: our button, the provider's page, back to us."""
        left = client.post(f"/sign-in/company/start?next={then}")
        assert left.status_code == 302 and left["Location"].startswith(self.url), left.content
        assert "code_challenge" in parse_qs(urlsplit(left["Location"]).query)
        back = httpx.post(left["Location"], data={"sub": person})
        assert back.status_code == 302, back.text
        came = urlsplit(back.headers["Location"])
        return client.get(f"{came.path}?{came.query}")


@pytest.fixture
def company(monkeypatch, settings):
    with run_server_in_thread() as server:
        url = f"http://localhost:{server.server_port}"
        monkeypatch.setattr(configured.ENV, "oidc_server_url", url)
        app: dict[str, Any] = {"provider_id": "company", "name": "Lab", "client_id": "touchstone", "secret": "s"}
        app["settings"] = {"server_url": url}
        settings.SOCIALACCOUNT_PROVIDERS = {"openid_connect": {"OAUTH_PKCE_ENABLED": True, "APPS": [app]}}
        yield Provider(url)


def signed_in(client: Client) -> User | None:
    return User.objects.get(pk=client.session[SESSION_KEY]) if SESSION_KEY in client.session else None


def test_somebody_new_comes_in_with_the_address_and_name_the_company_says(company, client):
    assert b"Sign in with" in client.get("/sign-in").content
    company.says("n1", email="Nia@Example.org", email_verified=True, name="Nia")
    came = company.sign_in(client, "n1", "/workspaces")
    assert came["Location"] == "/workspaces"
    user = signed_in(client)
    assert (user.email, user.name, user.has_usable_password()) == ("nia@example.org", "Nia", False)
    again = Client()
    company.sign_in(again, "n1")
    assert signed_in(again) == user and User.objects.filter(email="nia@example.org").count() == 1


@pytest.mark.parametrize("claims", [{}, {"email_verified": False}, {"email_verified": "true"}])
def test_an_address_that_nobody_vouches_for_opens_nothing(company, client, team, claims):
    company.says("o1", email=team.owner.user.email, **claims)
    answer = company.sign_in(client, "o1")
    assert answer.status_code == 403 and b"has not verified your address" in answer.content
    assert signed_in(client) is None


@pytest.mark.parametrize("proof", [Proof.NONE, Proof.INVITATION])
def test_whoever_made_the_account_before_loses_every_way_in(company, client, team, proof):
    """Another person may have made the account with this address, and waited for the owner."""
    User.objects.filter(pk=team.owner.user_id).update(proof=proof)
    team.owner.user.refresh_from_db()
    set_password(team.owner.user, PASSWORD)
    token = ApiClient(team.owner)
    waiting = Client()
    waiting.post("/sign-in", {"email": team.owner.user.email, "password": PASSWORD})
    assert signed_in(waiting)
    for kind in ("webauthn", "totp"):
        Authenticator.objects.create(user=team.owner.user, type=kind, data={})
    link = create_sign_in_link(team.owner.user)
    company.says("o1", email=team.owner.user.email, email_verified=True)
    company.sign_in(client, "o1")
    assert signed_in(client) == team.owner.user
    assert waiting.get("/workspaces").status_code == 302  # to the sign-in page
    waiting.post("/sign-in", {"email": team.owner.user.email, "password": PASSWORD})
    assert waiting.get("/workspaces").status_code == 302
    assert token.get("/me").status_code == 401
    assert not Authenticator.objects.filter(user=team.owner.user).exists()
    assert Client().post(f"/sign-in/link/{link}").status_code == 410


def test_an_account_whose_address_is_verified_keeps_its_password(company, client, team):
    addresses.prove(team.owner.user, Proof.MAIL)
    set_password(team.owner.user, PASSWORD)
    company.says("o1", email=team.owner.user.email, email_verified=True)
    company.sign_in(client, "o1")
    assert signed_in(client) == team.owner.user
    other = Client()
    other.post("/sign-in", {"email": team.owner.user.email, "password": PASSWORD})
    assert signed_in(other) == team.owner.user


def test_a_person_of_the_directory_is_known_by_their_id_when_the_address_changes(company, client):
    company.says("n1", email="nia@example.org", email_verified=True)
    company.sign_in(client, "n1")
    user = signed_in(client)
    company.says("n1", email="nia.new@example.org", email_verified=True)
    again = Client()
    company.sign_in(again, "n1")
    assert signed_in(again) == user


def test_a_closed_account_stays_closed(company, client, team):
    User.objects.filter(pk=team.annotator.user_id).update(is_active=False)
    company.says("a1", email=team.annotator.user.email, email_verified=True)
    assert company.sign_in(client, "a1").status_code == 403
    assert signed_in(client) is None


def test_groups_give_roles_and_take_them(company, team):
    groups.map_group(team.owner, "raters", Role.ANNOTATOR)
    groups.map_group(team.owner, "science", Role.RESEARCHER)

    def role_with(*named: str) -> str | None:
        company.says("n1", email="nia@example.org", email_verified=True, groups=list(named))
        company.sign_in(Client(), "n1")
        found = Membership.objects.filter(user__email="nia@example.org", workspace=team.workspace).first()
        return found.role if found else None

    assert role_with("unknown") is None
    assert role_with("raters") == Role.ANNOTATOR
    assert role_with("raters", "science") == Role.RESEARCHER
    token = ApiClient(Membership.objects.get(user__email="nia@example.org"))
    assert token.get("/me").status_code == 200
    assert role_with() is None
    assert token.get("/me").status_code == 401
    assert role_with("raters") == Role.ANNOTATOR
    said = AuditEntry.objects.filter(workspace=team.workspace).values_list("action", flat=True)
    assert {"member.joined", "member.role_changed", "member.left"} <= set(said)


def test_what_an_owner_did_by_hand_stands_over_groups(company, team):
    groups.map_group(team.owner, "raters", Role.OWNER)
    company.says("a1", email=team.annotator.user.email, email_verified=True, groups=["raters"])
    company.sign_in(Client(), "a1")
    assert Membership.objects.get(pk=team.annotator.pk).role == Role.ANNOTATOR
    remove_member(team.owner, team.annotator)
    company.sign_in(Client(), "a1")
    assert not Membership.objects.filter(user=team.annotator.user, workspace=team.workspace).exists()


@pytest.mark.parametrize("role", [Role.ANNOTATOR, Role.OWNER])
def test_a_role_that_an_owner_changed_stays_whatever_the_groups_say(company, team, role):
    groups.map_group(team.owner, "science", Role.RESEARCHER)
    company.says("n1", email="nia@example.org", email_verified=True, groups=["science"])
    company.sign_in(Client(), "n1")
    nia = Membership.objects.get(user__email="nia@example.org")
    change_role(team.owner, nia, role)
    company.sign_in(Client(), "n1")
    company.says("n1", email="nia@example.org", email_verified=True, groups=[])
    company.sign_in(Client(), "n1")
    assert Membership.objects.get(pk=nia.pk).role == role


def test_a_sign_in_that_names_no_groups_ends_what_groups_gave(company, team):
    groups.map_group(team.owner, "science", Role.RESEARCHER)
    company.says("n1", email="nia@example.org", email_verified=True, groups=["science"])
    company.sign_in(Client(), "n1")
    company.says("n1", email="nia@example.org", email_verified=True)
    company.sign_in(Client(), "n1")
    assert not Membership.objects.filter(user__email="nia@example.org").exists()


def test_the_last_owner_stays_when_the_group_is_gone(company, team):
    groups.map_group(team.owner, "heads", Role.OWNER)
    company.says("n1", email="nia@example.org", email_verified=True, groups=["heads"])
    company.sign_in(Client(), "n1")
    remove_member(Membership.objects.get(user__email="nia@example.org"), team.owner)
    company.says("n1", email="nia@example.org", email_verified=True, groups=[])
    company.sign_in(Client(), "n1")
    assert Membership.objects.get(user__email="nia@example.org").role == Role.OWNER


@pytest.fixture
def asking(team):
    """The workspace asks its people for a second factor. Nia comes in by her group."""
    groups.map_group(team.owner, "science", Role.RESEARCHER)
    team.workspace.asks_second_factor = True
    team.workspace.save()
    return {"email": "nia@example.org", "email_verified": True, "groups": ["science"]}


def is_closed(client: Client) -> bool:
    answer = client.get("/")
    return answer.status_code == 302 and answer["Location"] == "/settings/second-factor"


@pytest.mark.parametrize(
    ("said", "closed"),
    [
        ({}, True),
        ({"amr": ["pwd"], "acr": "1"}, True),
        ({"amr": ["pwd", "sms"]}, True),
        # not in the form of the standards, so nothing is known about it
        ({"amr": {"mfa": True}, "acr": [["phr"]]}, True),
        ({"amr": ["pwd", "mfa"]}, False),
        ({"amr": ["hwk"]}, False),
        ({"acr": "https://refeds.org/profile/mfa"}, False),
        ({"acr": "urn:lab:gold"}, False),
    ],
)
def test_the_company_counts_as_a_second_factor_where_it_says_so(company, client, asking, monkeypatch, said, closed):
    monkeypatch.setattr(configured.ENV, "company_second_factor_classes", ("urn:lab:gold",))
    company.says("n1", **asking, **said)
    company.sign_in(client, "n1")
    assert is_closed(client) is closed
    if closed:  # and she is not locked out: she sets up her own factor
        assert client.get("/settings/second-factor/app").status_code == 200


def test_what_the_provider_says_counts_for_the_sign_in_that_it_says_it_of(company, client, asking):
    company.says("n1", **asking, amr=["mfa"])
    company.sign_in(client, "n1")
    company.says("n1", **asking)
    other = Client()
    company.sign_in(other, "n1")
    assert not is_closed(client) and is_closed(other)
    company.sign_in(client, "n1")  # again, in the browser in which it was given before
    assert is_closed(client)


def test_an_installation_may_take_every_sign_in_by_the_company_as_one(company, client, asking, monkeypatch):
    monkeypatch.setattr(configured.ENV, "company_second_factor", "always")
    company.says("n1", **asking)
    company.sign_in(client, "n1")
    assert not is_closed(client)


def test_only_what_is_signed_says_how_somebody_signed_in():
    told = SimpleNamespace(account=SimpleNamespace(extra_data={"id_token": {}, "userinfo": {"amr": ["mfa"]}}))
    assert not asked_for_two(told)
    told.account.extra_data["id_token"] = {"amr": ["mfa"]}
    assert asked_for_two(told)


def test_only_owners_map_groups(team):
    assert browser(team.researcher).post("/settings/sign-in/groups", {"group": "g", "role": "owner"}).status_code == 403
    owner = browser(team.owner)
    owner.post("/settings/sign-in/groups", {"group": "g", "role": "annotator"})
    row = GroupRole.objects.get()
    assert b'<td class="strong">g</td>' in owner.get("/settings/sign-in").content
    assert browser(team.outsider).post(f"/settings/sign-in/groups/{row.pk}/remove").status_code == 404
    owner.post(f"/settings/sign-in/groups/{row.pk}/remove")
    assert not GroupRole.objects.exists()


def test_a_stolen_answer_of_the_provider_opens_nothing(company, client):
    """Each answer belongs to the browser that asked."""
    company.says("n1", email="nia@example.org", email_verified=True)
    left = client.post("/sign-in/company/start")
    back = urlsplit(httpx.post(left["Location"], data={"sub": "n1"}).headers["Location"])
    thief = Client()
    assert thief.get(f"{back.path}?{back.query}").status_code == 403
    assert signed_in(thief) is None


def test_without_a_provider_there_is_no_button(client):
    assert b"Sign in with Lab" not in client.get("/sign-in").content
    assert client.post("/sign-in/company/start").status_code == 404


@pytest.fixture
def between(monkeypatch):
    """`between(change)`: `change` changes the answers of the provider's token endpoint."""
    real = OAuth2Client.get_access_token
    return lambda change: monkeypatch.setattr(
        OAuth2Client, "get_access_token", lambda self, *args, **kwargs: change(real(self, *args, **kwargs))
    )


def test_a_forged_id_token_opens_nothing(company, client, between):
    company.says("n1", email="nia@example.org", email_verified=True)

    def forged(told):
        head, body, signature = told["id_token"].split(".")
        claims = json.loads(urlsafe_b64decode(body + "==")) | {"sub": "ada", "email": "ada@example.org"}
        changed = urlsafe_b64encode(json.dumps(claims).encode()).decode().rstrip("=")
        return told | {"id_token": f"{head}.{changed}.{signature}"}

    between(forged)
    assert company.sign_in(client, "n1").status_code == 403 and signed_in(client) is None
    between(lambda told: told | {"id_token": "not.a.token"})
    assert company.sign_in(client, "n1").status_code == 403 and not User.objects.exists()


def test_an_answer_to_another_sign_in_opens_nothing(company, client, between):
    """The token is valid, and was made for a browser that asked before."""
    company.says("n1", email="nia@example.org", email_verified=True)
    earlier = []
    between(lambda told: earlier.append(told) or told)
    company.sign_in(Client(), "n1")
    between(lambda told: earlier[0])
    assert company.sign_in(client, "n1").status_code == 403 and signed_in(client) is None
    between(lambda told: told)
    assert company.sign_in(client, "n1").status_code == 302 and signed_in(client) is not None


def test_a_description_of_another_provider_is_refused(company, client, settings):
    apps = settings.SOCIALACCOUNT_PROVIDERS["openid_connect"]["APPS"]
    apps[0]["settings"]["server_url"] = company.url.replace("localhost", "127.0.0.1")
    apps[0]["settings"]["openid_configuration_overrides"] = {"issuer": company.url}
    answer = client.post("/sign-in/company/start")
    assert answer.status_code == 403 and b"does not answer correctly" in answer.content


def test_a_provider_that_is_away_is_told(company, client, settings):
    settings.SOCIALACCOUNT_PROVIDERS["openid_connect"]["APPS"][0]["settings"]["server_url"] = "http://localhost:1"
    answer = client.post("/sign-in/company/start")
    assert answer.status_code == 403 and b"does not answer correctly" in answer.content


def test_nothing_of_the_providers_tokens_is_kept(company, client):
    company.says("n1", email="nia@example.org", email_verified=True)
    company.sign_in(client, "n1")
    assert signed_in(client) is not None and not SocialToken.objects.exists()
    assert "access_token" not in str(dict(client.session))


ISSUER = "https://login.example.org"
GOOD = {"iss": ISSUER, "aud": "touchstone", "sub": "n1", "nonce": "x"}


@pytest.fixture(scope="module")
def key_pair():
    return rsa.generate_private_key(public_exponent=65537, key_size=2048)


@pytest.fixture
def read(key_pair, monkeypatch, settings, rf):
    """The data that we read in an ID token of a provider that lists this key."""
    listed = json.loads(jwt.algorithms.RSAAlgorithm.to_jwk(key_pair.public_key())) | {"kid": "k1"}
    answers = {"openid-configuration": {"issuer": ISSUER, "jwks_uri": f"{ISSUER}/keys"}, "keys": {"keys": [listed]}}

    class Session:
        """The provider's addresses."""

        def __enter__(self):
            return self

        def __exit__(self, *_):
            pass

        def get(self, url, **_):
            return SimpleNamespace(raise_for_status=lambda: None, json=lambda: answers[url.rpartition("/")[2]])

    monkeypatch.setattr(CompanyAdapter, "get_requests_session", lambda self: Session())
    app = {"provider_id": "company", "name": "Lab", "client_id": "touchstone", "settings": {"server_url": ISSUER}}
    settings.SOCIALACCOUNT_PROVIDERS = {"openid_connect": {"APPS": [app]}}
    asked = Company(rf.get("/"), "company")
    return lambda token: asked._decode_id_token(SimpleNamespace(client_id="touchstone"), token)


def token(claims, key, algorithm="RS256", **head):
    return jwt.encode({"exp": time.time() + 60} | claims, key, algorithm, headers={"kid": "k1"} | head)


def test_a_good_id_token_is_read_whether_it_names_its_key_or_not(read, key_pair):
    assert read(token(GOOD, key_pair))["sub"] == "n1"
    assert read(jwt.encode({"exp": time.time() + 60} | GOOD, key_pair, "RS256"))["sub"] == "n1"


@pytest.mark.parametrize(
    "wrong",
    [
        {"aud": "somebody else"},
        {"iss": "https://evil.example"},
        {"exp": 1_000_000_000},
        {"nbf": 4_000_000_000},
    ],
)
def test_an_id_token_for_another_time_or_place_opens_nothing(read, key_pair, wrong):
    with pytest.raises(OAuth2Error):
        read(token(GOOD | wrong, key_pair))


def test_an_id_token_that_the_provider_did_not_sign_opens_nothing(read, key_pair):
    other = rsa.generate_private_key(public_exponent=65537, key_size=2048)
    for made in (
        token(GOOD, other),
        token(GOOD, None, "none"),
        token(GOOD, "the client's own secret, or a guess", "HS256"),
        token(GOOD, key_pair, kid="k2"),
        token(GOOD, key_pair).rpartition(".")[0] + ".",
        "no token",
    ):
        with pytest.raises(OAuth2Error):
            read(made)
