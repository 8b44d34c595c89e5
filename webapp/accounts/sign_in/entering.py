"""The way in that all ways in share: whoever has a second factor is asked for it before a session opens."""

from allauth.account.internal.flows.login import perform_login, record_authentication
from allauth.account.models import Login
from django.http import HttpRequest, HttpResponse

from ..models import User

BACKEND = "django.contrib.auth.backends.ModelBackend"  # that of all sessions: `WorkspaceMiddleware` knows it


def let_in(request: HttpRequest, user: User, method: str, then: str) -> HttpResponse:
    """Signs `user` in, who has proven by `method` ("password", "link") who they are, and sends them to `then`.

    With a second factor the answer leads to its page first; the session opens when that page lets them through. `then` is
    an address of this site, as the caller has checked.
    """
    record_authentication(request, user, method)
    answer: HttpResponse = perform_login(request, Login(user=user, redirect_url=then))
    return answer
