"""Permissions: each check refuses, unless one of these functions lets the person through."""

from collections.abc import Callable
from functools import wraps
from typing import Concatenate, ParamSpec

from django.contrib.auth.views import redirect_to_login
from django.core.exceptions import PermissionDenied
from django.http import HttpRequest, HttpResponse, HttpResponseBase

from webapp.core.problems import Problem

from . import areas
from .models import Membership, Role, User

Rest = ParamSpec("Rest")
View = Callable[Concatenate[HttpRequest, Rest], HttpResponseBase]
BY_HAND = {"x-token-needs": "a token cannot do this"}  # `openapi_extra` of an operation that calls `by_hand`


def require(request: HttpRequest, role: Role = Role.ANNOTATOR) -> Membership:
    """The membership this request acts under, if it carries the rights of `role`; else PermissionDenied."""
    membership: Membership | None = getattr(request, "membership", None)
    if membership is None:
        raise PermissionDenied("You are not a member of a workspace. Ask an owner to invite you.")
    return at_least(membership, role)


def by_hand(request: HttpRequest, what: str, code: str) -> Membership:
    """The membership of a person who is signed in; a token, which is a key to one workspace, is refused with `code`."""
    membership = require(request)
    if getattr(request, "api_token", None):
        raise Problem(f"A token cannot {what}. Sign in and do it on the page.", code=code, status=403)
    return membership


def key_opens(request: HttpRequest, need: areas.Need) -> bool:
    """Whether the caller's token has this right. For a person who is signed in, the role alone decides."""
    token = getattr(request, "api_token", None)
    return token is None or areas.allow(token.areas, need)


def at_least(membership: Membership, role: Role) -> Membership:
    """The membership, if it carries the rights of `role`; else PermissionDenied."""
    if not membership.may(role):
        raise PermissionDenied(f"You need the role {role.label} for this; yours is {Role(membership.role).label}.")
    return membership


def member(role: Role = Role.ANNOTATOR) -> Callable[[View[Rest]], View[Rest]]:
    """Decorates a page: anonymous people are sent to sign in and back; `role` is the least that may see it."""

    def decorate(view: View[Rest]) -> View[Rest]:
        @wraps(view)
        def guarded(request: HttpRequest, /, *args: Rest.args, **kwargs: Rest.kwargs) -> HttpResponseBase:
            if not request.user.is_authenticated:
                return to_sign_in(request)
            require(request, role)
            return view(request, *args, **kwargs)

        return guarded

    return decorate


def to_sign_in(request: HttpRequest) -> HttpResponse:
    """Redirects to the sign-in page and back. A fragment is refused: its page says why, and keeps what was typed in it."""
    if request.headers.get("HX-Request"):
        return HttpResponse(status=401)
    return redirect_to_login(_page_of(request))


def _page_of(request: HttpRequest) -> str:
    """The address to return to after signing in: never the target of a form."""
    return request.get_full_path() if request.method == "GET" else "/"


def administrators(view: View[Rest]) -> View[Rest]:
    """Decorator of a page that only administrators of the installation may open. Their role in a workspace does not matter."""

    @wraps(view)
    def guarded(request: HttpRequest, /, *args: Rest.args, **kwargs: Rest.kwargs) -> HttpResponseBase:
        if not (isinstance(request.user, User) and request.user.is_administrator):
            raise PermissionDenied("Only administrators of this installation see this page.")
        return view(request, *args, **kwargs)

    guarded.for_administrators = True  # type: ignore[attr-defined]  # `identity.middleware` looks for it
    return guarded
