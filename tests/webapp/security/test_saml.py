"""Sign-in by a SAML provider. The tests make and sign its answers: some open an account, others do not."""

import base64
import zlib
from datetime import UTC, datetime, timedelta
from urllib.parse import parse_qs, urlsplit
from xml.sax.saxutils import escape

import pytest
from cryptography import x509
from cryptography.hazmat.primitives import hashes, serialization
from cryptography.hazmat.primitives.asymmetric import rsa
from cryptography.x509.oid import NameOID
from django.conf import settings as configured
from django.contrib.auth import SESSION_KEY
from django.contrib.sessions.models import Session
from django.test import Client
from django.utils import timezone
from lxml import etree
from pydantic import ValidationError

from webapp.accounts.models import Membership, Proof, Role, User
from webapp.accounts.profile.services import set_password
from webapp.environment import Environment
from webapp.identity import groups, saml

pytestmark = pytest.mark.django_db
PASSWORD = "a long enough passphrase"
IDP = "https://login.example.org/metadata"
US = "http://testserver/sign-in/company/saml"
FORMAT = "urn:oasis:names:tc:SAML:{}:nameid-format:{}"
TRANSIENT, PERSISTENT, MAIL = (
    FORMAT.format("2.0", "transient"),
    FORMAT.format("2.0", "persistent"),
    FORMAT.format("1.1", "emailAddress"),
)


def key_and_certificate() -> tuple[str, str]:
    """(key, certificate) as PEM."""
    key = rsa.generate_private_key(public_exponent=65537, key_size=2048)
    name = x509.Name([x509.NameAttribute(NameOID.COMMON_NAME, "login.example.org")])
    now = datetime.now(UTC)
    made = x509.CertificateBuilder().subject_name(name).issuer_name(name).public_key(key.public_key())
    made = made.serial_number(1).not_valid_before(now).not_valid_after(now + timedelta(days=1))
    pem = key.private_bytes(
        serialization.Encoding.PEM, serialization.PrivateFormat.PKCS8, serialization.NoEncryption()
    ).decode()
    return pem, made.sign(key, hashes.SHA256()).public_bytes(serialization.Encoding.PEM).decode()


@pytest.fixture(scope="module")
def pair():
    return key_and_certificate()


class Provider:
    """The company's provider, and the person's browser between the provider and us."""

    def __init__(self, key: str, certificate: str) -> None:
        self.key, self.certificate = key, certificate

    def asked(self, client: Client, then: str = "/") -> str:
        """Presses our button. Returns the id of the question that the browser takes to the provider."""
        left = client.post(f"/sign-in/company/saml?next={then}")
        assert left.status_code == 302 and left["Location"].startswith("https://login.example.org/sso"), left.content
        packed = parse_qs(urlsplit(left["Location"]).query)["SAMLRequest"][0]
        question = etree.fromstring(zlib.decompress(base64.b64decode(packed), -15))
        assert question.get("AssertionConsumerServiceURL") == f"{US}/answer"
        return question.get("ID")

    def assertion(self, to: str, name: str = "n1", **said) -> str:
        """The answer of the provider, signed unless `signed` is False. `attributes` has the names and values of attributes."""
        now = datetime.now(UTC)
        until = said.get("until", now + timedelta(minutes=5))
        attributes = said.get("attributes") or {"email": ["nia@example.org"], "email_verified": ["true"]}
        told = "".join(
            f'<saml:Attribute Name="{each}">'
            + "".join(f"<saml:AttributeValue>{escape(value)}</saml:AttributeValue>" for value in values)
            + "</saml:Attribute>"
            for each, values in attributes.items()
        )
        audience = said.get("audience", f"{US}/metadata")
        restricted = f"<saml:AudienceRestriction><saml:Audience>{audience}</saml:Audience></saml:AudienceRestriction>"
        answers = f' InResponseTo="{to}"' if to else ""
        text = f"""<saml:Assertion xmlns:saml="urn:oasis:names:tc:SAML:2.0:assertion" ID="{said.get("id", "_a1")}" Version="2.0" IssueInstant="{now:%Y-%m-%dT%H:%M:%SZ}"><saml:Issuer>{said.get("issuer", IDP)}</saml:Issuer><saml:Subject><saml:NameID Format="{said.get("format", PERSISTENT)}">{name}</saml:NameID><saml:SubjectConfirmation Method="urn:oasis:names:tc:SAML:2.0:cm:bearer"><saml:SubjectConfirmationData NotOnOrAfter="{until:%Y-%m-%dT%H:%M:%SZ}" Recipient="{said.get("recipient", f"{US}/answer")}"{answers}/></saml:SubjectConfirmation></saml:Subject><saml:Conditions NotBefore="{now - timedelta(minutes=1):%Y-%m-%dT%H:%M:%SZ}" NotOnOrAfter="{until:%Y-%m-%dT%H:%M:%SZ}">{restricted if audience else ""}</saml:Conditions><saml:AuthnStatement AuthnInstant="{now:%Y-%m-%dT%H:%M:%SZ}"><saml:AuthnContext><saml:AuthnContextClassRef>{said.get("context", "urn:oasis:names:tc:SAML:2.0:ac:classes:Password")}</saml:AuthnContextClassRef></saml:AuthnContext></saml:AuthnStatement><saml:AttributeStatement>{told}</saml:AttributeStatement></saml:Assertion>"""
        return self._signed(text) if said.get("signed", True) else text

    def response(self, to: str, assertion: str, signed: bool = False) -> str:
        now = datetime.now(UTC)
        answers = f' InResponseTo="{to}"' if to else ""
        text = f"""<samlp:Response xmlns:samlp="urn:oasis:names:tc:SAML:2.0:protocol" xmlns:saml="urn:oasis:names:tc:SAML:2.0:assertion" ID="_r1" Version="2.0" IssueInstant="{now:%Y-%m-%dT%H:%M:%SZ}"{answers}><saml:Issuer>{IDP}</saml:Issuer><samlp:Status><samlp:StatusCode Value="urn:oasis:names:tc:SAML:2.0:status:Success"/></samlp:Status>{assertion}</samlp:Response>"""
        return self._signed(text) if signed else text

    def _signed(self, text: str) -> str:
        from onelogin.saml2.constants import OneLogin_Saml2_Constants as Names
        from onelogin.saml2.utils import OneLogin_Saml2_Utils

        made = OneLogin_Saml2_Utils.add_sign(
            text, self.key, self.certificate, sign_algorithm=Names.RSA_SHA256, digest_algorithm=Names.SHA256
        )
        return made.decode() if isinstance(made, bytes) else made

    def sign_in(self, client: Client, then: str = "/", **said):
        question = self.asked(client, then)
        said = {"id": f"_{question}"} | said
        return brought(client, self.response(question, self.assertion(question, **said)))


def brought(client: Client, response: str):
    """The browser brings the provider's page to us without our session. It sends the session only with our next redirect."""
    cookie = client.cookies.pop("sessionid", None)
    came = client.post("/sign-in/company/saml/answer", {"SAMLResponse": base64.b64encode(response.encode()).decode()})
    assert came.status_code == 302, came.content
    if cookie is not None:
        client.cookies["sessionid"] = cookie.value
    return client.get(came["Location"])


def signed_in(client: Client) -> User | None:
    return User.objects.get(pk=client.session[SESSION_KEY]) if SESSION_KEY in client.session else None


@pytest.fixture
def company(monkeypatch, settings, pair):
    monkeypatch.setattr(configured.ENV, "saml_sso_url", "https://login.example.org/sso")
    known = settings.SOCIALACCOUNT_PROVIDERS
    app = {
        "provider_id": settings.COMPANY_SAML,
        "name": "Lab",
        "client_id": settings.COMPANY,
        "settings": {
            "idp": {"entity_id": IDP, "sso_url": "https://login.example.org/sso", "x509cert": pair[1]},
            "advanced": {
                "strict": True,
                "want_assertion_signed": True,
                "want_name_id": True,
                "allow_single_label_domains": True,
            },
        },
    }
    settings.SOCIALACCOUNT_PROVIDERS = {**known, "saml": {**known["saml"], "APPS": [app]}}
    return Provider(*pair)


def test_somebody_new_comes_in_with_what_the_company_says(company, client):
    assert b"Sign in with" in client.get("/sign-in").content
    attributes = {"mail": ["Nia@example.org"], "displayName": ["Nia N"], "email_verified": ["true"]}
    came = company.sign_in(client, "/workspaces", attributes=attributes)
    assert came.status_code == 302 and came["Location"] == "/workspaces"
    user = signed_in(client)
    assert (user.email, user.name, user.proof, user.has_usable_password()) == (
        "nia@example.org",
        "Nia N",
        Proof.COMPANY,
        False,
    )
    again = Client()
    company.sign_in(again, attributes={"email": ["nia.new@example.org"]})  # known by their name at the provider
    assert signed_in(again) == user


@pytest.mark.parametrize(
    "attributes",
    [{"mail": ["ada@example.org"]}, {"mail": ["ada@example.org"], "email_verified": ["false"]}, {"x": ["y"]}],
)
def test_an_address_that_nobody_vouches_for_opens_nothing(company, client, team, attributes):
    answer = company.sign_in(client, attributes=attributes)
    assert (
        answer.status_code == 403 and b"has not verified your address" in answer.content and signed_in(client) is None
    )


def test_an_installation_may_believe_all_addresses_of_the_provider(company, client, team, monkeypatch):
    monkeypatch.setattr(configured.ENV, "saml_trusts_addresses", True)
    company.sign_in(client, name=team.owner.user.email, format=MAIL, attributes={"x": ["y"]})
    assert signed_in(client) == team.owner.user


def test_whoever_made_the_account_before_loses_every_way_in(company, client, team):
    User.objects.filter(pk=team.owner.user_id).update(proof=Proof.NONE)
    team.owner.user.refresh_from_db()
    set_password(team.owner.user, PASSWORD)
    company.sign_in(client, attributes={"mail": [team.owner.user.email], "email_verified": ["true"]})
    assert signed_in(client) == team.owner.user
    other = Client()
    other.post("/sign-in", {"email": team.owner.user.email, "password": PASSWORD})
    assert signed_in(other) is None


def test_groups_give_roles_and_take_them(company, team):
    groups.map_group(team.owner, "science", Role.RESEARCHER)

    def role_with(*named: str) -> str | None:
        attributes = {"mail": ["nia@example.org"], "email_verified": ["true"]} | (
            {"groups": list(named)} if named else {}
        )
        company.sign_in(Client(), attributes=attributes)
        found = Membership.objects.filter(user__email="nia@example.org", workspace=team.workspace).first()
        return found.role if found else None

    assert [role_with("others"), role_with("others", "science"), role_with()] == [None, Role.RESEARCHER, None]


def test_a_closed_account_stays_closed(company, client, team):
    User.objects.filter(pk=team.annotator.user_id).update(is_active=False)
    answer = company.sign_in(client, attributes={"mail": [team.annotator.user.email], "email_verified": ["true"]})
    assert answer.status_code == 403 and b"closed" in answer.content and signed_in(client) is None


@pytest.mark.parametrize(
    "said",
    [
        {"signed": False},
        {"audience": "https://other.example.org/metadata"},
        {"audience": ""},
        {"issuer": "https://evil.example.org"},
        {"recipient": "https://other.example.org/answer"},
        {"until": datetime(2026, 1, 1, tzinfo=UTC)},
        {"format": TRANSIENT},
    ],
    ids=lambda said: "-".join(f"{name} {value}" for name, value in said.items()),
)
def test_an_assertion_that_is_not_for_us_now_opens_nothing(company, client, said):
    answer = company.sign_in(client, **said)
    assert answer.status_code == 403 and signed_in(client) is None
    assert not User.objects.filter(email="nia@example.org").exists()


def test_only_the_providers_own_signature_counts(company, client):
    stranger = Provider(*key_and_certificate())
    question = company.asked(client)
    assert brought(client, company.response(question, stranger.assertion(question))).status_code == 403
    question = company.asked(client)
    unsigned = company.assertion(question, signed=False)  # within a signed message: the assertion itself must be signed
    assert brought(client, company.response(question, unsigned, signed=True)).status_code == 403
    question = company.asked(client)
    changed = company.assertion(question).replace("nia@example.org", "ada@example.org")
    assert brought(client, company.response(question, changed)).status_code == 403
    assert signed_in(client) is None


def test_an_assertion_is_used_once_and_answers_one_question_of_one_browser(company, client):
    question = company.asked(client)
    assertion = company.assertion(question, id="_once")
    response = company.response(question, assertion)
    assert brought(client, response).status_code == 302 and signed_in(client)
    thief = Client()
    assert brought(thief, response).status_code == 403  # this browser has no such question
    theirs = company.asked(thief)
    # wrapped as an answer to their question
    assert brought(thief, company.response(theirs, assertion)).status_code == 403
    bare = company.assertion("", id="_bare")  # an assertion without a question would fit into any answer
    assert brought(thief, company.response(company.asked(thief), bare)).status_code == 403
    assert brought(thief, company.response("", bare)).status_code == 403
    again = company.asked(thief)  # the provider uses the id of an assertion again
    assert brought(thief, company.response(again, company.assertion(again, id="_once"))).status_code == 403
    assert signed_in(thief) is None


def test_a_second_assertion_beside_the_signed_one_opens_nothing(company, client, team):
    question = company.asked(client)
    forged = company.assertion(question, "o1", signed=False, id="_b", attributes={"mail": [team.owner.user.email], "email_verified": ["true"]})  # fmt: skip
    for both in (forged + company.assertion(question), company.assertion(question) + forged):
        assert brought(client, company.response(question, both)).status_code == 403
    assert signed_in(client) is None


@pytest.mark.parametrize("said", ["nonsense", "<a/>", '<!DOCTYPE a [<!ENTITY b "c">]><a>&b;</a>'])
def test_an_answer_that_is_none_is_refused(company, client, said):
    company.asked(client)
    assert brought(client, said).status_code == 403 and signed_in(client) is None


def test_answers_are_limited_in_size_and_number(company, client, monkeypatch):
    large = client.post("/sign-in/company/saml/answer", {"SAMLResponse": "a" * (saml.LARGEST + 1)})
    assert large.status_code == 413
    monkeypatch.setattr(saml, "ANSWERS_PER_MINUTE", 2)
    came = [client.post("/sign-in/company/saml/answer", {"SAMLResponse": "a"}).status_code for _ in range(3)]
    assert came == [302, 302, 429]
    assert client.get("/sign-in/company/saml/answer").status_code == 405


@pytest.mark.parametrize("sent", [{}, {"SAMLResponse": ""}, {"RelayState": "a" * 1000}])
def test_a_post_without_an_answer_is_refused_before_anything_is_kept(company, client, sent):
    assert client.post("/sign-in/company/saml/answer", sent).status_code == 400
    assert client.post("/sign-in/company/saml/answer", b"{}", content_type="application/json").status_code == 400
    assert not Session.objects.exists()


def test_an_answer_is_kept_for_minutes_only(company, client):
    assert client.post("/sign-in/company/saml/answer", {"SAMLResponse": "a"}).status_code == 302
    left = Session.objects.get().expire_date - timezone.now()
    assert timedelta(seconds=saml.KEPT_S - 60) < left <= timedelta(seconds=saml.KEPT_S)


def test_the_provider_reads_our_side(company, client):
    told = client.get("/sign-in/company/saml/metadata")
    assert told.status_code == 200
    ours = etree.fromstring(told.content)
    assert ours.get("entityID") == f"{US}/metadata"
    names = {"md": "urn:oasis:names:tc:SAML:2.0:metadata"}
    (descriptor,) = ours.findall("md:SPSSODescriptor", names)
    assert descriptor.get("WantAssertionsSigned") == "true"
    assert [each.get("Location") for each in descriptor.findall("md:AssertionConsumerService", names)] == [
        f"{US}/answer"
    ]
    assert not descriptor.findall("md:SingleLogoutService", names)


def test_without_a_provider_there_is_no_way_in(client):
    assert b"Sign in with" not in client.get("/sign-in").content.replace(b"Sign in with a passkey", b"")
    assert client.post("/sign-in/company/saml").status_code == 404
    assert client.get("/sign-in/company/saml/metadata").status_code == 404
    assert client.post("/sign-in/company/saml/answer", {"SAMLResponse": "a"}).status_code == 404


@pytest.mark.parametrize(
    ("given", "told"),
    [
        ({}, "SAML_ENTITY_ID and SAML_CERTIFICATE_FILE"),
        ({"SAML_CERTIFICATE_FILE": __file__, "SAML_ENTITY_ID": "x"}, "holds no certificate"),
        ({"SAML_CERTIFICATE_FILE": "/nowhere.pem", "SAML_ENTITY_ID": "x"}, "does not point to a file"),
    ],
)
def test_half_a_provider_stops_the_start(given, told, monkeypatch):
    monkeypatch.setenv("SAML_SSO_URL", "https://login.example.org/sso")
    for name, value in given.items():
        monkeypatch.setenv(name, value)
    with pytest.raises(ValidationError, match=told):
        Environment()


@pytest.mark.parametrize(
    ("context", "methods", "closed"),
    [
        ("urn:oasis:names:tc:SAML:2.0:ac:classes:Password", [], True),
        ("urn:oasis:names:tc:SAML:2.0:ac:classes:PasswordProtectedTransport", ["urn:x:password"], True),
        ("https://refeds.org/profile/mfa", [], False),
        (
            "urn:oasis:names:tc:SAML:2.0:ac:classes:Password",
            ["urn:x:password", "http://schemas.microsoft.com/claims/multipleauthn"],
            False,
        ),
    ],
)
def test_the_company_counts_as_a_second_factor_where_it_says_so(company, client, team, context, methods, closed):
    groups.map_group(team.owner, "science", Role.RESEARCHER)
    team.workspace.asks_second_factor = True
    team.workspace.save()
    attributes = {"email": ["nia@example.org"], "email_verified": ["true"], "groups": ["science"]}
    company.sign_in(client, context=context, attributes=attributes | ({saml.METHODS: methods} if methods else {}))
    assert signed_in(client) is not None
    assert (client.get("/").status_code == 302) is closed
