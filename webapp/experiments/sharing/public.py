"""The pages that open without an account.

Every view of a link stands behind `opens`, which reads only through `access.opened_by`. The only thing that is written is that the link was
opened. People who are signed in get the same as everybody.
"""

from collections.abc import Callable, Mapping
from functools import wraps
from typing import Any

from django.contrib.auth.decorators import login_not_required
from django.http import HttpRequest, HttpResponse, JsonResponse
from django.template.loader import render_to_string
from django.views.decorators.http import require_GET

from webapp.core.problems import error_body
from webapp.core.requests.limits import TooMany, count_seconds, seconds_to_wait

from . import access, kinds, services
from .access import NothingShared, OpenedLink

PER_MINUTE = 240  # requests of one address: a page with its charts takes about ten
HEADERS = {
    "Cache-Control": "no-store",
    "Referrer-Policy": "no-referrer",  # the address of the page is a key
    "X-Robots-Tag": "noindex, nofollow, noarchive",
}
GONE = ("This link shows nothing", "It is mistyped, has ended or was revoked. Ask the person who gave it to you.")


def opens(shows: str = "") -> Callable[[Callable[..., HttpResponse]], Callable[..., HttpResponse]]:
    """Opens the link for a view, which gets the request, the opened link and what else its address names. A link that shows something else
    than `shows` opens nothing there. Strangers are counted before anything is looked up, so that a refusal tells nothing of a secret."""

    def opening(view: Callable[..., HttpResponse]) -> Callable[..., HttpResponse]:
        @require_GET
        def opened(request: HttpRequest, secret: str, **named: Any) -> HttpResponse:
            try:
                return _opened(request, secret, shows, view, named)
            except NothingShared:
                return _refused(request, 404, *GONE)
            except TooMany as problem:
                response = _refused(request, 429, "Too many requests", f"Try again in {problem.wait_s} seconds.")
                response["Retry-After"] = str(problem.wait_s)
                return response

        @wraps(view)
        def guarded(request: HttpRequest, secret: str, **named: Any) -> HttpResponse:
            response = opened(request, secret, **named)
            for name, value in HEADERS.items():
                response[name] = value
            return response

        return login_not_required(guarded)

    return opening


def _opened(
    request: HttpRequest, secret: str, shows: str, view: Callable[..., HttpResponse], named: Mapping[str, Any]
) -> HttpResponse:
    if wait_s := seconds_to_wait(f"shared:{request.META.get('REMOTE_ADDR')}", PER_MINUTE):
        raise TooMany(wait_s)
    opened = access.opened_by(secret)
    if shows not in ("", opened.link.shows):
        raise NothingShared
    with count_seconds(f"link-{opened.link.pk}"):
        return view(request, opened, **named)


def _refused(request: HttpRequest, status: int, title: str, message: str) -> HttpResponse:
    """A response that is the same for every reason; a chart gets it as JSON."""
    if request.headers.get("Accept", "").startswith("application/json"):
        code = "too_many_requests" if status == 429 else "not_found"
        return JsonResponse(error_body(request, code, f"{title}. {message}"), status=status)
    return HttpResponse(render_to_string("shared/refused.html", {"title": title, "message": message}), status=status)


@opens()
def page(request: HttpRequest, opened: OpenedLink) -> HttpResponse:
    response = kinds.KINDS[opened.link.shows].page(request, opened)
    services.note_opened(opened.link)
    return response
