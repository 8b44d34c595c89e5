"""Sign-in by the company's own provider (SAML 2.0): the checks of a response, and its claims about the person.

The library checks signatures, times, issuer and form. It passes over what an answer leaves out; here nothing may be left out: for whom the
assertion is, to which question of which browser, and at which address. So an assertion that was made for somebody else or was used before
opens nothing, however it is wrapped.
"""

import time
from typing import Any

from allauth.core.exceptions import ImmediateHttpResponse
from allauth.socialaccount.models import SocialLogin
from allauth.socialaccount.providers.saml.provider import SAMLProvider
from allauth.socialaccount.sessions import LoginSession
from django.conf import settings
from django.contrib.auth.decorators import login_not_required
from django.core.cache import cache
from django.core.exceptions import PermissionDenied
from django.http import Http404, HttpRequest, HttpResponse
from django.views.decorators.cache import never_cache
from django.views.decorators.csrf import csrf_exempt
from django.views.decorators.http import require_GET, require_POST

from webapp.core.auditing import audit
from webapp.core.requests.limits import seconds_to_wait

from . import company

LARGEST = 300_000  # bytes of an answer
KEPT_S = 300  # an answer, until the browser comes for it: it is sent at once
ANSWERS_PER_MINUTE = 60  # from one address: each is kept until the browser comes for it
LONGEST_S = (
    24 * 3600
)  # how long an assertion is remembered where it says that it holds longer: no question waits that long
TRANSIENT = "urn:oasis:names:tc:SAML:2.0:nameid-format:transient"
REFUSED = "The company's sign-in did not let you in. Try again."
METHODS = (
    "http://schemas.microsoft.com/claims/authnmethodsreferences"  # as Entra ID tells them; SAML has no word for it
)
NAMES = {
    "email": (
        "urn:oid:0.9.2342.19200300.100.1.3",
        "http://schemas.xmlsoap.org/ws/2005/05/identity/claims/emailaddress",
        "email",
        "mail",
    ),
    "email_verified": ("http://schemas.auth0.com/email_verified", "email_verified"),
    "name": (
        "urn:oid:2.16.840.1.113730.3.1.241",
        "http://schemas.microsoft.com/identity/claims/displayname",
        "displayName",
        "name",
    ),
}


def _allauth(request: HttpRequest) -> tuple[Any, Any]:
    """allauth's `utils` and `views` of SAML. They load libraries that few installations need, so nobody else pays for them,
    and they read the host from its header, which an old client may leave out."""
    request.META.setdefault("HTTP_HOST", request.get_host())
    from allauth.socialaccount.providers.saml import utils, views

    return utils, views


class CompanySaml(SAMLProvider):  # type: ignore[misc]  # allauth has no types
    def sociallogin_from_response(self, request: HttpRequest, response: Any) -> SocialLogin:
        """The sign-in of a response. Raises ImmediateHttpResponse for a response that lacks something, or that was used before."""
        ours = _allauth(request)[0].build_saml_config(request, self.app.settings, self.app.client_id)["sp"]
        wrong = response_faults(response, ours)
        if wrong or not _is_new(response):
            raise ImmediateHttpResponse(company.refusal(request, REFUSED))
        return super().sociallogin_from_response(request, response)

    def extract_extra_data(self, data: Any) -> dict[str, Any]:
        """The claims that `company.claims` reads, with the names of OpenID."""
        found = data.get_attributes()

        def first(kind: str) -> str:
            values = (str(found[name][0]) for name in NAMES[kind] if found.get(name))
            return next(values, "")

        email = first("email") or self.extract_common_fields(data).get("email") or ""
        groups = [str(each) for each in found.get(settings.ENV.saml_groups_attribute) or []]
        vouched = first("email_verified").lower() == "true"
        return {
            "userinfo": {"email": email, "email_verified": vouched, "name": first("name"), "groups": groups},
            "sign_in": {"amr": list(found.get(METHODS) or []), "acr": list(data.get_last_authn_contexts())},
        }


def response_faults(response: Any, ours: dict[str, Any]) -> list[str]:
    """The faults of a response whose signature, times and issuer are right: missing parts, and parts about somebody else. `response` is the
    library's; `ours` our side of its configuration."""
    from onelogin.saml2.xml_utils import OneLogin_Saml2_XML as Xml

    document = Xml.to_etree(response.get_last_response_xml())
    assertion = "//saml:Assertion"
    confirmed = Xml.query(document, f"{assertion}/saml:Subject/saml:SubjectConfirmation/saml:SubjectConfirmationData")
    audiences = Xml.query(document, f"{assertion}/saml:Conditions/saml:AudienceRestriction/saml:Audience")
    asked = response.get_last_response_in_response_to()
    checks = {
        "is for somebody else": ours["entityId"] not in [(each.text or "").strip() for each in audiences],
        "answers no question": not asked
        or not confirmed
        or any(each.get("InResponseTo") != asked for each in confirmed),
        "went elsewhere": any(each.get("Recipient") != ours["assertionConsumerService"]["url"] for each in confirmed),
        "holds for ever": any(not each.get("NotOnOrAfter") for each in confirmed),
        "names the person differently each time": response.get_nameid_format() == TRANSIENT,
        "has no id": not response.get_last_assertion_id(),
    }
    return [fault for fault, found in checks.items() if found]


def _is_new(response: Any) -> bool:
    """Whether the assertion has not come before. Raises the cache's errors: without the cache nobody can sign in."""
    until = response.get_last_assertion_not_on_or_after() or 0
    stays = min(LONGEST_S, max(60, int(until - time.time()) + 60))
    return bool(cache.add(f"saml-assertion:{response.get_last_assertion_id()}", 1, stays))


@login_not_required
@never_cache
@require_POST  # another site's link must not begin it
def start(request: HttpRequest, organization_slug: str) -> HttpResponse:
    begun: HttpResponse = _allauth(request)[1].login(request, organization_slug=organization_slug)
    return begun


@csrf_exempt  # it comes from the provider's page; the question that it answers is in this browser's session
@login_not_required
@never_cache
@require_POST
def answer(request: HttpRequest, organization_slug: str) -> HttpResponse:
    """Keeps the provider's answer until the browser comes for it with its session, which it sends along from our pages alone."""
    utils, views = _allauth(request)
    utils.get_app_or_404(request, organization_slug)
    length = request.META.get("CONTENT_LENGTH") or ""
    if not length.isdigit() or int(length) > LARGEST:
        return HttpResponse("The answer is too large.", status=413, content_type="text/plain")
    if wait_s := seconds_to_wait(f"saml:{audit.origin.get().address}", ANSWERS_PER_MINUTE):
        refused = HttpResponse("Too many sign-ins.", status=429, content_type="text/plain")
        refused["Retry-After"] = str(wait_s)
        return refused
    if not request.POST.get("SAMLResponse"):
        return HttpResponse("There is no answer in this.", status=400, content_type="text/plain")
    held = LoginSession(request, "saml_acs_session", "saml-acs-session")  # allauth takes this very one
    held.store.set_expiry(KEPT_S)
    kept: HttpResponse = views.acs(request, organization_slug=organization_slug)
    return kept


@login_not_required
@never_cache
@require_GET
def finish(request: HttpRequest, organization_slug: str) -> HttpResponse:
    _, views = _allauth(request)
    from onelogin.saml2.errors import OneLogin_Saml2_ValidationError as Wrong

    try:
        answered: HttpResponse = views.finish_acs(request, organization_slug=organization_slug)
    except ImmediateHttpResponse as refused:
        answered = refused.response
    except (PermissionDenied, ValueError, SyntaxError, Wrong):  # no such question in this browser; no name; no XML
        answered = company.refusal(request, REFUSED)
    return answered


@login_not_required
@never_cache
@require_GET
def metadata(request: HttpRequest, organization_slug: str) -> HttpResponse:
    """The metadata of our side, for the provider."""
    from onelogin.saml2.settings import OneLogin_Saml2_Settings

    utils, _ = _allauth(request)
    app = utils.get_app_or_404(request, organization_slug)
    config = utils.build_saml_config(request, app.settings, organization_slug)
    del config["sp"]["singleLogoutService"]  # a sign-out there is not a sign-out here
    told = OneLogin_Saml2_Settings(settings=config, sp_validation_only=True).get_sp_metadata()
    return HttpResponse(told, content_type="application/samlmetadata+xml")


@login_not_required
def no_logout(request: HttpRequest, organization_slug: str) -> HttpResponse:
    """allauth needs an address of this name when it builds our side."""
    raise Http404
