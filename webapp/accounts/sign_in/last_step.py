"""The last step of every way to sign in: a person with a second factor is asked for it before a session opens."""

from allauth.account.internal.flows.login import perform_login, record_authentication
from allauth.account.models import Login
from django.http import HttpRequest, HttpResponse

from ..models import User

BACKEND = "django.contrib.auth.backends.ModelBackend"  # the backend of all sessions: `WorkspaceMiddleware` knows it


def let_in(request: HttpRequest, user: User, method: str, then: str) -> HttpResponse:
    """Signs `user` in, who has proven their identity by `method` ("password", "link"), and sends them to `then`.

    With a second factor the response leads to its page first; the session opens when that page accepts the factor. `then` is an address of
    this site; the caller has checked that.
    """
    record_authentication(request, user, method)
    answer: HttpResponse = perform_login(request, Login(user=user, redirect_url=then))
    return answer
