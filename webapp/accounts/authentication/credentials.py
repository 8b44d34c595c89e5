"""Authentication of the API: a bearer token, or the session of a signed-in browser with its CSRF token."""

from collections.abc import Callable, Mapping
from dataclasses import replace

from django.conf import settings
from django.http import HttpRequest
from ninja.security import APIKeyCookie, HttpBearer

from webapp.core.auditing import audit
from webapp.core.database import prepared
from webapp.core.monitoring.logs import current_person
from webapp.core.requests.limits import TooMany, seconds_to_wait

from .. import areas
from ..models import ApiToken, Membership, hash_secret
from ..tokens.services import touch_token

REQUESTS_PER_MINUTE = 1200
# Prepared, because every request of a script asks for them
_token = prepared.RowBy(lambda: ApiToken.objects.select_related("user", "workspace"), "digest")
_membership = prepared.RowBy(lambda: Membership.objects.select_related("user", "workspace"), "user_id", "workspace_id")


def limit(key: str) -> None:
    if wait_s := seconds_to_wait(key, REQUESTS_PER_MINUTE):
        raise TooMany(wait_s)


def live_token(secret: str) -> ApiToken | None:
    """The token, unless it was revoked, has expired or belongs to a closed account."""
    row = _token(hash_secret(secret))
    return row if row and row.revoked_at is None and not row.over and row.user.is_active else None


def bearer(secret: str, need: areas.Need) -> Membership | None:
    """The membership that a live token opens. None if the token lacks a needed right, or if the person has left the workspace: then the key
    no longer counts."""
    row = live_token(secret)
    if row is None or not areas.allow(row.areas, need):
        return None
    touch_token(row)
    return _membership(row.user_id, row.workspace_id)


def authenticate(request: HttpRequest, secret: str, check: Callable[[Mapping[str, str]], None]) -> Membership | None:
    """The membership that a live token opens, if `check` accepts its areas. Also sets it on the request, together with its person.

    Raises TooMany, and what `check` raises.
    """
    row = live_token(secret)
    if row is None:
        return None
    membership = _membership(row.user_id, row.workspace_id)
    if membership is None:
        return None
    limit(f"user:{row.user_id}")  # counted for the person: more tokens do not give more requests
    check(row.areas)
    touch_token(row)
    current_person.set(str(row.user_id))
    audit.origin.set(replace(audit.origin.get(), token=row.prefix))
    request.user, request.membership, request.api_token = row.user, membership, row  # type: ignore[attr-defined]
    return membership


class TokenAuth(HttpBearer):
    """Sets `request.user`, `request.membership` and `request.api_token` from `Authorization: Bearer ts_...`."""

    def authenticate(self, request: HttpRequest, token: str) -> Membership | None:
        return authenticate(request, token, lambda held: areas.check_request(held, request.method or "", request.path))


class SessionAuth(APIKeyCookie):
    """The browser's session, as `WorkspaceMiddleware` found it. Changes need the CSRF token."""

    param_name = settings.SESSION_COOKIE_NAME

    def __call__(self, request: HttpRequest) -> Membership | None:
        # checked first: a script without credentials should get 401, not an error about CSRF
        if not request.user.is_authenticated:
            return None
        return super().__call__(request)

    def authenticate(self, request: HttpRequest, key: str | None) -> Membership | None:
        membership: Membership | None = getattr(request, "membership", None)
        if membership:
            limit(f"user:{membership.user_id}")
        return membership
