"""Names every request, refuses what no view can use, and gives every error of the API its shape."""

import json
from collections.abc import Callable
from secrets import token_hex

from django.http import HttpRequest, HttpResponse, HttpResponseBadRequest

from . import audit
from .logs import current_request_id
from .problems import UNNAMED, told


class RequestIdMiddleware:
    """Sets `request.id`, the id people quote from an error; the same id is in the log and in `X-Request-Id`."""

    def __init__(self, get_response: Callable[[HttpRequest], HttpResponse]) -> None:
        self.get_response = get_response

    def __call__(self, request: HttpRequest) -> HttpResponse:
        request.id = token_hex(6)  # type: ignore[attr-defined]
        token = current_request_id.set(request.id)  # type: ignore[attr-defined]
        came = audit.origin.set(audit.Origin(address=request.META.get("REMOTE_ADDR") or ""))
        try:
            response = self._answer(request)
        finally:
            current_request_id.reset(token)
            audit.origin.reset(came)
        response["X-Request-Id"] = request.id  # type: ignore[attr-defined]
        return response

    def _answer(self, request: HttpRequest) -> HttpResponse:
        # Postgres text cannot hold a NUL; caught here, it never reaches a query
        if "\0" in request.path or "%00" in request.META.get("QUERY_STRING", ""):
            said = f"The address holds a NUL character. (Request {request.id})"  # type: ignore[attr-defined]
            return HttpResponseBadRequest(said, content_type="text/plain")
        return self.get_response(request)


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
    """In place, so that headers such as `Allow` and `Retry-After` stay."""
    code, message = UNNAMED.get(response.status_code, ("error", response.reason_phrase))
    response.content = json.dumps(told(request, code, message)).encode()
    response["Content-Type"] = "application/json; charset=utf-8"
    response["Content-Length"] = str(len(response.content))
