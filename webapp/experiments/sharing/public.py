"""What opens without an account: the page of a link and what its charts ask for. Nothing here reads but through `access.opened_by`,
nothing is written but that the link was opened, and people who are signed in get the same as everybody."""

from collections.abc import Callable
from functools import wraps

from django.contrib.auth.decorators import login_not_required
from django.http import HttpRequest, HttpResponse, JsonResponse
from django.shortcuts import render
from django.template.loader import render_to_string
from django.views.decorators.http import require_GET

from webapp.core.limits import TooMany, measured, seconds_to_wait
from webapp.core.numbers import whole
from webapp.core.problems import told

from ..table.compare_api import written
from . import access, services, shown
from .access import NothingShared, OpenedLink

PER_MINUTE = 240  # requests of one address: a page with its charts takes about ten
HEADERS = {
    "Cache-Control": "no-store",
    "Referrer-Policy": "no-referrer",  # the address of the page is a key
    "X-Robots-Tag": "noindex, nofollow, noarchive",
}
GONE = ("This link shows nothing", "It is mistyped, has ended or was withdrawn. Ask the person who gave it to you.")
MOST_KEY = 80


def _shared(view: Callable[[HttpRequest, OpenedLink], HttpResponse]) -> Callable[..., HttpResponse]:
    """Opens the link for the view. Strangers are counted before anything is looked up, so that a refusal tells nothing of a secret."""

    def opening(request: HttpRequest, secret: str) -> HttpResponse:
        try:
            if wait_s := seconds_to_wait(f"shared:{request.META.get('REMOTE_ADDR')}", PER_MINUTE):
                raise TooMany(wait_s)
            opened = access.opened_by(secret)
            with measured(f"link-{opened.link.pk}"):
                return view(request, opened)
        except NothingShared:
            return _refused(request, 404, *GONE)
        except TooMany as problem:
            response = _refused(request, 429, "Too many requests", f"Try again in {problem.wait_s} seconds.")
            response["Retry-After"] = str(problem.wait_s)
            return response

    @wraps(view)
    def guarded(request: HttpRequest, secret: str) -> HttpResponse:
        response = require_GET(opening)(request, secret)
        for name, value in HEADERS.items():
            response[name] = value
        return response

    return login_not_required(guarded)


def _refused(request: HttpRequest, status: int, title: str, message: str) -> HttpResponse:
    """The same for every reason; a chart gets it as JSON."""
    if request.headers.get("Accept", "").startswith("application/json"):
        code = "too_many_requests" if status == 429 else "not_found"
        return JsonResponse(told(request, code, f"{title}. {message}"), status=status)
    return HttpResponse(render_to_string("shared/refused.html", {"title": title, "message": message}), status=status)


@_shared
def page(request: HttpRequest, opened: OpenedLink) -> HttpResponse:
    services.note_opened(opened.link)
    return render(request, "shared/comparison.html", {"count": len(opened.runs), "source": f"{request.path}/"})


@_shared
def compare(request: HttpRequest, opened: OpenedLink) -> HttpResponse:
    """`?baseline=` is the place of a run, 0 for none."""
    return written(shown.comparison(opened, whole(request.GET.get("baseline", ""))))


@_shared
def curves(request: HttpRequest, opened: OpenedLink) -> HttpResponse:
    return written(shown.curves(opened, request.GET.get("key", "")[:MOST_KEY]))
