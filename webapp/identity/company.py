"""Sign-in by the company's own provider (OpenID Connect or SAML): from what it tells to an account of ours."""

import logging
from typing import Any

from allauth.core.exceptions import ImmediateHttpResponse
from allauth.socialaccount.models import SocialLogin
from django.conf import settings
from django.db import transaction
from django.http import HttpRequest, HttpResponse
from django.shortcuts import render

from webapp.accounts import addresses
from webapp.accounts.forms import SignInForm
from webapp.accounts.models import Proof, User

from . import groups

logger = logging.getLogger(__name__)
UNVERIFIED = "The company's sign-in does not vouch for your address. Ask whoever runs it to verify addresses."
CLOSED = "Your account is closed. Ask an administrator of this installation."


def meet(request: HttpRequest, login: SocialLogin) -> None:
    """Connects the sign-in with the account of its address, which is made if there is none.

    Only an address that the provider vouches for opens an account: otherwise whoever can name one at the provider would
    come into the account of somebody else. An account whose address nothing had shown to be its person's is handed over: see
    `addresses.hand_over`.
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


def claims(login: SocialLogin) -> dict[str, Any]:
    """What the provider says of the person: the ID token's claims, and those of its user information over them. `saml` tells
    the same in these words."""
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
