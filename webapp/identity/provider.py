"""The way to the company's OpenID provider and back, with the checks that OpenID Connect leaves to the client.

allauth accepts an ID token from the token endpoint without checking its signature, and sends no nonce. Here each sign-in has a nonce, the
signature is checked with the provider's keys, and the provider's description must be of the provider that was named.
"""

import secrets
from collections.abc import Callable
from functools import wraps
from typing import Any

from allauth.account.utils import get_next_redirect_url
from allauth.core.internal.deferred import jwt
from allauth.socialaccount.adapter import get_adapter
from allauth.socialaccount.models import SocialApp, SocialLogin
from allauth.socialaccount.providers.base.constants import AuthProcess
from allauth.socialaccount.providers.oauth2.client import OAuth2Error
from allauth.socialaccount.providers.oauth2.views import OAuth2CallbackView
from allauth.socialaccount.providers.openid_connect.provider import OpenIDConnectProvider
from allauth.socialaccount.providers.openid_connect.views import OpenIDConnectOAuth2Adapter
from django.contrib.auth.decorators import login_not_required
from django.http import Http404, HttpRequest, HttpResponse
from django.utils.crypto import constant_time_compare
from django.views.decorators.cache import never_cache
from django.views.decorators.http import require_GET, require_POST

from . import company

ALGORITHMS = frozenset({"RS256", "RS384", "RS512", "PS256", "PS384", "PS512", "ES256", "ES384", "ES512", "EdDSA"})
AWAY = "The company's sign-in does not answer correctly. Try again, or ask the person who runs it."
WELL_KNOWN = "/.well-known/"


class Company(OpenIDConnectOAuth2Adapter):  # type: ignore[misc]  # allauth has no types
    @property
    def openid_config(self) -> dict[str, Any]:
        """The provider's description. Raises OAuth2Error if it is another provider's (OpenID Connect Discovery, section 4.3)."""
        config: dict[str, Any] = super().openid_config
        named = str(self.get_provider().app.settings["server_url"]).partition(WELL_KNOWN)[0]
        if str(config.get("issuer", "")).rstrip("/") != named.rstrip("/"):
            raise OAuth2Error(f"{named} describes another issuer, {config.get('issuer')}")
        return config

    def _decode_id_token(self, app: SocialApp, id_token: str) -> dict[str, Any]:
        """The claims of the token, once signature, issuer, audience and time are right (OpenID Connect Core, section 3.1.3.7). Raises
        OAuth2Error."""
        try:
            head = jwt.get_unverified_header(id_token)
            if head.get("alg") not in ALGORITHMS:
                raise OAuth2Error("the ID token is not signed with a key pair")
            return self._read(id_token, head, str(app.client_id))
        except (jwt.PyJWTError, KeyError) as error:  # no token, a wrong one, or a provider that lists no keys
            raise OAuth2Error(f"the ID token is not valid: {error}") from error

    def _read(self, id_token: str, head: dict[str, Any], audience: str) -> dict[str, Any]:
        """The claims of the token, checked by the key that it names; by any key of the provider if it names none, which is allowed."""
        for listed in self._keys():
            if listed.get("use", "sig") != "sig" or head.get("kid", listed.get("kid")) != listed.get("kid"):
                continue
            try:
                claims: dict[str, Any] = jwt.decode(
                    id_token,
                    jwt.PyJWK(listed, head["alg"]),
                    algorithms=[head["alg"]],
                    audience=audience,
                    issuer=self.openid_config["issuer"],
                    options={"require": ["exp", "iss", "aud", "sub"]},
                )
            except (jwt.InvalidSignatureError, jwt.InvalidKeyError, jwt.PyJWKError):
                continue  # another of its keys may be the one
            return claims
        raise OAuth2Error("the ID token is not signed with a key of the provider")

    def _keys(self) -> list[dict[str, Any]]:
        with get_adapter().get_requests_session() as session:
            answer = session.get(self.openid_config["jwks_uri"])
            answer.raise_for_status()
            keys: list[dict[str, Any]] = answer.json()["keys"]
        return keys


def fits(login: SocialLogin) -> bool:
    """Whether the ID token belongs to the request with which this browser was sent away."""
    token = login.account.extra_data.get("id_token")
    asked = str((login.state or {}).get("nonce") or "")
    return not token or (bool(asked) and constant_time_compare(str(token.get("nonce") or ""), asked))


def _told(view: Callable[[HttpRequest, str], HttpResponse]) -> Callable[[HttpRequest, str], HttpResponse]:
    """A view that reports if the provider cannot be asked; 404 if there is none of that name."""

    @wraps(view)
    def answered(request: HttpRequest, provider_id: str) -> HttpResponse:
        try:
            return view(request, provider_id)
        except SocialApp.DoesNotExist:
            raise Http404 from None
        except (OAuth2Error, OSError) as error:
            company.logger.warning("the company's provider cannot be asked: %s", error)
            return company.refusal(request, AWAY)

    return answered


@login_not_required
@require_POST
@never_cache
@_told
def start(request: HttpRequest, provider_id: str) -> HttpResponse:
    """Sends the browser to the provider, with the nonce."""
    nonce = secrets.token_urlsafe(24)
    provider: OpenIDConnectProvider = get_adapter(request).get_provider(request, provider_id)
    provider.oauth2_adapter_class = Company
    asked: HttpResponse = provider.redirect(
        request, AuthProcess.LOGIN, get_next_redirect_url(request), auth_params={"nonce": nonce}, nonce=nonce
    )
    return asked


@login_not_required
@never_cache
@require_GET
@_told
def callback(request: HttpRequest, provider_id: str) -> HttpResponse:
    answer: HttpResponse = OAuth2CallbackView.adapter_view(Company(request, provider_id))(request)
    return answer
