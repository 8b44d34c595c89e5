"""Whether a request whose body has not been read yet comes from somebody with an account."""

from collections.abc import Mapping
from http.cookies import CookieError, SimpleCookie
from typing import Any

from channels.db import database_sync_to_async
from django.conf import settings
from django.contrib.auth import SESSION_KEY

from webapp.core.requests.authorization import bearer_token

from ..models import User
from ..sessions.store import SessionStore
from .credentials import live_token


async def has_account(scope: Mapping[str, Any]) -> bool:
    """Whether the token or the session cookie in the headers belongs to an account. The views decide later what this person may do.

    Closes its database connection at once, because there is no Django request yet whose end would close it.
    """
    answer: bool = await database_sync_to_async(_has_account)(scope)
    return answer


def _has_account(scope: Mapping[str, Any]) -> bool:
    headers = {name: value.decode("latin-1") for name, value in scope["headers"]}
    if secret := bearer_token(headers.get(b"authorization")):
        return live_token(secret) is not None
    try:
        morsel = SimpleCookie(headers.get(b"cookie", "")).get(settings.SESSION_COOKIE_NAME)
    except CookieError:
        return False
    user_id = SessionStore(morsel.value).get(SESSION_KEY) if morsel else None
    return user_id is not None and User.objects.filter(pk=user_id, is_active=True).exists()
