"""Names every request, refuses requests that no view can handle, and gives every error of the API its format."""

import json
from collections.abc import Callable
from secrets import token_hex

from django.db import DataError
from django.http import HttpRequest, HttpResponse, HttpResponseBadRequest, HttpResponseNotAllowed

from trainer import tracing
from webapp.request_id import NOBODY, current_request_id

from ..auditing import audit
from ..monitoring.logs import current_person
from ..monitoring.telemetry import METHODS
from ..problems import UNNAMED, error_body

NUL_REFUSED = ("NUL (0x00)", "\\u0000")
"""The words of the driver and of the database about a NUL in a text and in JSON."""
UNTRACED = ("/static/", "/healthz", "/readyz", "/metrics")


class ViewGuard:
    """A middleware whose only work is its `process_view`."""

    def __init__(self, get_response: Callable[[HttpRequest], HttpResponse]) -> None:
        self.get_response = get_response

    def __call__(self, request: HttpRequest) -> HttpResponse:
        return self.get_response(request)


class RequestIdMiddleware:
    """Sets `request.id`, the id people quote from an error; the same id is in the log and in `X-Request-Id`."""

    def __init__(self, get_response: Callable[[HttpRequest], HttpResponse]) -> None:
        self.get_response = get_response

    def __call__(self, request: HttpRequest) -> HttpResponse:
        request.id = token_hex(6)  # type: ignore[attr-defined]
        token = current_request_id.set(request.id)  # type: ignore[attr-defined]
        person = current_person.set(NOBODY)  # until it is known
        came = audit.origin.set(audit.ChangeOrigin(address=request.META.get("REMOTE_ADDR") or ""))
        try:
            response = self.get_response(request) if request.path.startswith(UNTRACED) else self._traced(request)
        finally:
            current_request_id.reset(token)
            current_person.reset(person)
            audit.origin.reset(came)
        response["X-Request-Id"] = request.id  # type: ignore[attr-defined]
        return response

    def _traced(self, request: HttpRequest) -> HttpResponse:
        """Responds in a span that is named by the route's pattern. What strangers say of traces in their headers is not believed."""
        known: dict[str, str] = {"http.request.method": request.method or "", "touchstone.request_id": request.id}  # type: ignore[attr-defined]
        with tracing.span(str(request.method), "SERVER", known) as span:
            request.trace = tracing.trace_id()  # type: ignore[attr-defined]
            response = self.get_response(request)
            if request.resolver_match is not None:
                route = f"/{request.resolver_match.route}"
                span.name(f"{request.method} {route}")
                span.set({"http.route": route})
            span.set({"http.response.status_code": response.status_code})
            if response.status_code >= 500:
                span.failed(str(response.status_code))
        return response


class UsableMiddleware:
    """Refuses what no view can use; behind those that guard browsers, whose headers its answers carry as well."""

    def __init__(self, get_response: Callable[[HttpRequest], HttpResponse]) -> None:
        self.get_response = get_response

    def __call__(self, request: HttpRequest) -> HttpResponse:
        if request.method not in METHODS:  # TRACE among others, which would be answered like a GET
            return HttpResponseNotAllowed(sorted(METHODS))
        # Postgres text cannot hold a NUL; caught here, it never reaches a query
        if "\0" in request.path or "%00" in request.META.get("QUERY_STRING", ""):
            return _refused(request, "The address holds a NUL character.")
        return self.get_response(request)

    def process_exception(self, request: HttpRequest, exception: Exception) -> HttpResponse | None:
        """A field with a NUL reaches the database only if no check of the field has refused it; nothing of it is stored."""
        if isinstance(exception, DataError) and any(sign in str(exception) for sign in NUL_REFUSED):
            return _refused(
                request, "A field holds a NUL character, which cannot be stored. Remove it, and send it again."
            )
        return None


def _refused(request: HttpRequest, why: str) -> HttpResponse:
    said = f"{why} (Request {request.id})"  # type: ignore[attr-defined]
    return HttpResponseBadRequest(said, content_type="text/plain; charset=utf-8")


class ApiErrorsMiddleware:
    """Under /api/v1/, errors made outside the API are JSON in the API's shape as well.

    Only addresses and methods that the API knows reach it: for the others Django answers with a page, which a program
    that reads JSON cannot use.
    """

    def __init__(self, get_response: Callable[[HttpRequest], HttpResponse]) -> None:
        self.get_response = get_response

    def __call__(self, request: HttpRequest) -> HttpResponse:
        response = self.get_response(request)
        foreign = not response.get("Content-Type", "").startswith("application/json")
        if response.status_code >= 400 and foreign and request.path.startswith("/api/v1/"):
            _in_api_shape(request, response)
        return response


def _in_api_shape(request: HttpRequest, response: HttpResponse) -> None:
    """Changes the response in place, so that headers such as `Allow` and `Retry-After` stay."""
    code, message = UNNAMED.get(response.status_code, ("error", response.reason_phrase))
    response.content = json.dumps(error_body(request, code, message)).encode()
    response["Content-Type"] = "application/json; charset=utf-8"
    response["Content-Length"] = str(len(response.content))
