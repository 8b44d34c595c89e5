"""Names every request, and refuses what no view can use."""

import logging
from collections.abc import Callable
from contextvars import ContextVar
from secrets import token_hex

from django.http import HttpRequest, HttpResponse, HttpResponseBadRequest

current_request_id: ContextVar[str] = ContextVar("current_request_id", default="-")


class RequestIdMiddleware:
    """Sets `request.id`, the id people quote from an error; the same id is in the log and in `X-Request-Id`."""

    def __init__(self, get_response: Callable[[HttpRequest], HttpResponse]) -> None:
        self.get_response = get_response

    def __call__(self, request: HttpRequest) -> HttpResponse:
        request.id = token_hex(6)  # type: ignore[attr-defined]
        token = current_request_id.set(request.id)  # type: ignore[attr-defined]
        try:
            response = self._answer(request)
        finally:
            current_request_id.reset(token)
        response["X-Request-Id"] = request.id  # type: ignore[attr-defined]
        return response

    def _answer(self, request: HttpRequest) -> HttpResponse:
        # Postgres text cannot hold a NUL; caught here, it never reaches a query
        if "\0" in request.path or "%00" in request.META.get("QUERY_STRING", ""):
            return HttpResponseBadRequest("The address holds a NUL character.", content_type="text/plain")
        return self.get_response(request)


class RequestIdFilter(logging.Filter):
    """Puts the id on every log record as `request_id`."""

    def filter(self, record: logging.LogRecord) -> bool:
        record.request_id = current_request_id.get()
        return True
