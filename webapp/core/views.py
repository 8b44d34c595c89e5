"""Health, and the pages that people see if something is wrong."""

import re
import sys
from pathlib import Path
from typing import Any

from django.conf import settings
from django.contrib.auth.decorators import login_not_required
from django.core.exceptions import DisallowedHost
from django.http import HttpRequest, HttpResponse, JsonResponse
from django.shortcuts import redirect, render
from django.template.loader import render_to_string
from django.urls import is_valid_path
from django.views.decorators.cache import never_cache
from django.views.decorators.http import require_safe

from webapp.version import VERSION

from . import health
from .database import schema
from .health import DATABASE_AWAY

RETRY_AFTER_S = 5


@login_not_required
@never_cache
@require_safe
def healthz(request: HttpRequest) -> JsonResponse:
    """200: this process answers. Nothing else is checked, so that nobody restarts it because a database is down."""
    return JsonResponse({"web": "ok"})


@login_not_required
@never_cache
@require_safe
def readyz(request: HttpRequest) -> JsonResponse:
    """Each service with its state, `ok`, `away`, `late` or `low`; 503 when one is away without which no page is answered."""
    seen = health.WATCH.look()
    ready = all(seen[name].up for name in health.NEEDED)
    return JsonResponse({name: service.state for name, service in seen.items()}, status=200 if ready else 503)


@require_safe
def version(request: HttpRequest) -> HttpResponse:
    """The running version, whether the database fits it, and the changes of each version."""
    file = Path(settings.BASE_DIR) / "CHANGELOG.md"
    changes = file.read_text().partition("\n## ") if file.exists() else ("", "", "")
    told = re.sub(r"\n +(?=\S)", " ", "".join(changes[1:]))  # the file's lines are cut for editors, not for readers
    context = {"version": VERSION, "schema": schema.state(), "changes": told}
    return render(request, "version.html", context)


def problem(request: HttpRequest, status: int, title: str, message: str) -> HttpResponse:
    """A page that needs no database and no session, because either may be broken."""
    context = _context(request, status, title, message)
    return HttpResponse(render_to_string("errors/problem.html", context), status=status)


def _inside(request: HttpRequest, status: int, title: str, message: str) -> HttpResponse:
    """An error page with the navigation, for somebody who is signed in. Nothing is broken: only this page is closed, or not there."""
    if getattr(request, "membership", None) is None:
        return problem(request, status, title, message)
    return render(request, "errors/problem_inside.html", _context(request, status, title, message), status=status)


def _context(request: HttpRequest, status: int, title: str, message: str) -> dict[str, Any]:
    return {"status": status, "title": title, "message": message, "id": getattr(request, "id", "")}


def bad_request(request: HttpRequest, exception: Exception) -> HttpResponse:
    if isinstance(exception, DisallowedHost):
        message = "The server does not answer to this address. The person who runs it can set PUBLIC_URL to the address that you used."
        return problem(request, 400, "Wrong address", message)
    return problem(request, 400, "The server cannot read this request", "Go back and try again.")


def forbidden(request: HttpRequest, exception: Exception) -> HttpResponse:
    message = str(exception) or "Your role in this workspace does not allow it."
    return _inside(request, 403, "You may not do this", message)


def csrf_failure(request: HttpRequest, reason: str = "") -> HttpResponse:
    return problem(request, 403, "This form was open too long", "Go back, load the page again and send it once more.")


def not_found(request: HttpRequest, exception: Exception) -> HttpResponse:
    if meant := _without_slash(request):
        return redirect(meant)
    return _inside(request, 404, "Nothing here", "The page does not exist, or you may not see it.")


def _without_slash(request: HttpRequest) -> str:
    """The page that an address with a slash at its end means; empty if there is none, and for an address of the API."""
    path = request.path.rstrip("/")
    if (
        request.method not in ("GET", "HEAD")
        or path == request.path
        or path.startswith("/api/")
        or not is_valid_path(path)
    ):
        return ""
    return f"{path}?{query}" if (query := request.META.get("QUERY_STRING", "")) else path


def server_error(request: HttpRequest) -> HttpResponse:
    """A lost database is a pause, not a crash: the page says so and tries again by itself."""
    if isinstance(sys.exc_info()[1], DATABASE_AWAY):
        response = problem(
            request, 503, "The database is away", "Nothing is lost. This page tries again every few seconds."
        )
        response["Retry-After"] = response["Refresh"] = str(RETRY_AFTER_S)
        return response
    return problem(request, 500, "An error happened on the server", "Give the id below when you report it.")
