"""Sign-in by the company's own provider (OpenID Connect or SAML): from its claims to an account here."""

import logging
from typing import Any

from allauth.core.exceptions import ImmediateHttpResponse
from allauth.socialaccount.models import SocialLogin
from django.conf import settings
from django.db import transaction
from django.http import HttpRequest, HttpResponse
from django.shortcuts import render
from django.urls import reverse

from webapp.accounts.addresses import services as addresses
from webapp.accounts.models import Proof, User
from webapp.accounts.sign_in.forms import SignInForm

from . import groups

logger = logging.getLogger(__name__)
SAML_CLASS = "urn:oasis:names:tc:SAML:2.0:ac:classes:"
METHODS = frozenset(
    {
        "mfa",
        "otp",
        "hwk",
        "swk",
        "sc",
        "fpt",
        "face",
        "iris",
        "retina",
        "http://schemas.microsoft.com/claims/multipleauthn",
    }
)
"""Methods that are a second factor: several factors, codes, keys and cards that a person has, and biometrics. Messages to a telephone
(`sms`, `tel`) count if the provider calls the sign-in `mfa`."""
CLASSES = frozenset(
    {
        "https://refeds.org/profile/mfa",
        "phr",
        "phrh",
        "http://schemas.openid.net/pape/policies/2007/06/multi-factor",
        "http://schemas.openid.net/pape/policies/2007/06/multi-factor-physical",
        "http://schemas.microsoft.com/claims/multipleauthn",
        *(f"{SAML_CLASS}{name}" for name in ("MobileTwoFactorContract", "MobileTwoFactorUnregistered")),
        *(f"{SAML_CLASS}{name}" for name in ("Smartcard", "SmartcardPKI", "TimeSyncToken")),
    }
)
"""Classes of sign-ins with a second factor that have a meaning everywhere: REFEDS, OpenID, Microsoft, SAML."""
UNVERIFIED = "The company's sign-in has not verified your address. Ask the person who runs it to verify addresses."
CLOSED = "Your account is closed. Ask an administrator of this installation."


def sign_ins() -> list[dict[str, str]]:
    """The address and the name of each that this installation has."""
    env = settings.ENV
    known = [
        (env.oidc_server_url, "openid_connect_login", env.oidc_name),
        (env.saml_sso_url, "saml_login", env.saml_name),
    ]
    return [{"start": reverse(view, args=[settings.COMPANY]), "name": name} for url, view, name in known if url]


def connect_account(request: HttpRequest, login: SocialLogin) -> None:
    """Connects the sign-in with the account of its address, which is made if there is none.

    Only an address that the provider vouches for opens an account: otherwise a person who can name any address at the provider could open
    another person's account. An account whose address nothing had shown to be its person's is handed over: see `addresses.hand_over`.
    """
    told, env = claims(login), settings.ENV
    saml = login.account.provider == settings.COMPANY_SAML
    trusted, listed = (
        (env.saml_trusts_addresses, "groups") if saml else (env.oidc_trusts_addresses, env.oidc_groups_claim)
    )
    if not login.is_existing:
        email = str(told.get("email") or "").strip().lower()
        if not email or not (told.get("email_verified") is True or trusted):
            raise ImmediateHttpResponse(refusal(request, UNVERIFIED))
        login.connect(request, _account(email, str(told.get("name") or "")))
    if not login.user.is_active:
        raise ImmediateHttpResponse(refusal(request, CLOSED))
    named = told.get(listed)
    # providers leave the claim out for people of no group: what groups had given ends then, too
    groups.follow_sign_in(login.user, [str(each) for each in named] if isinstance(named, list) else [])


def asked_for_two(login: SocialLogin) -> bool:
    """Whether the provider says that this sign-in took a second factor: by its methods (`amr`, RFC 8176) or by its class (`acr`, and
    AuthnContextClassRef of SAML). Only an ID token counts, because it is signed. A factor that it does not name was not asked for."""
    data = login.account.extra_data
    told = data.get("id_token") or data.get("sign_in") or {}
    return bool(_listed(told.get("amr")) & METHODS or _listed(told.get("acr")) & _classes())


def _listed(value: object) -> set[str]:
    """A text, or the texts of a list; other values of a provider are ignored."""
    return {each for each in (value if isinstance(value, list) else [value]) if isinstance(each, str)}


def _classes() -> frozenset[str]:
    return CLASSES.union(settings.ENV.company_second_factor_classes)


def claims(login: SocialLogin) -> dict[str, Any]:
    """The claims of the provider about the person: those of the ID token, replaced by those of its user information. `saml` uses the same
    names."""
    data = login.account.extra_data
    return {**(data.get("id_token") or {}), **(data.get("userinfo") or {})}


@transaction.atomic
def _account(email: str, name: str) -> User:
    user = User.objects.filter(email=email).first()
    if user is None:
        return User.objects.create_user(email, name=name[:120], proof=Proof.COMPANY)
    addresses.hand_over(user, Proof.COMPANY)
    return user


def refusal(request: HttpRequest, why: str) -> HttpResponse:
    return render(request, "accounts/sign_in.html", {"form": SignInForm(), "next": "/", "locked": why}, status=403)
