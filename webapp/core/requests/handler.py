"""Carries HTTP requests from the event loop to synchronous code and back."""

import asyncio
import logging
import time
from collections.abc import AsyncIterator, Awaitable, Callable, Iterator, Mapping
from concurrent.futures import ThreadPoolExecutor
from functools import partial
from secrets import token_hex
from typing import Any, cast

from asgiref.sync import sync_to_async
from django.conf import settings
from django.core import signals
from django.core.exceptions import RequestAborted
from django.core.handlers.asgi import ASGIHandler, get_script_prefix
from django.db import close_old_connections
from django.http import FileResponse, HttpRequest, HttpResponse, JsonResponse, StreamingHttpResponse
from django.http.response import HttpResponseBase
from django.urls import set_script_prefix

from ..monitoring import telemetry
from ..problems import error_body
from . import bodies

logger = logging.getLogger(__name__)
# of a response that no middleware has seen; HSTS is empty if PUBLIC_URL promises no https
GUARDS = {
    "X-Content-Type-Options": "nosniff",
    "Content-Security-Policy": "default-src 'none'; base-uri 'none'; object-src 'none'; frame-ancestors 'none'",
    "Cache-Control": "no-store",
}
HSTS = (
    {
        "Strict-Transport-Security": f"max-age={settings.SECURE_HSTS_SECONDS}"
        + "; includeSubDomains" * settings.SECURE_HSTS_INCLUDE_SUBDOMAINS
    }
    if settings.SECURE_HSTS_SECONDS
    else {}
)
Receive = Callable[[], Awaitable[Mapping[str, Any]]]
Send = Callable[[Mapping[str, Any]], Awaitable[None]]


class ThreadedHandler(ASGIHandler):
    """Django's handler for views and middleware that are synchronous, as ours are.

    Django's own makes a thread for each request and hops between it and the event loop for each signal and layer, which
    costs more than many of our views. Here a request takes one of `threads` long-lived threads for all of it: one hop.
    Requests beyond that number wait for a thread in order of arrival, where waiting is cheap, instead of in the queue for
    database connections, where it ends in an error. No thread is held while a body is read from, or a reply sent to, a
    slow network.
    """

    def __init__(self, threads: int, known: bodies.Known) -> None:
        self._known = known
        super(ASGIHandler, self).__init__()  # its own would load the middleware in asynchronous mode
        self.load_middleware(is_async=False)
        threadpool = ThreadPoolExecutor(threads, thread_name_prefix="http")
        self._respond_in_thread = sync_to_async(self._respond, thread_sensitive=False, executor=threadpool)

    async def handle(self, scope: Mapping[str, Any], receive: Receive, send: Send) -> None:
        try:
            body = await bodies.read(scope, receive, self._known)
        except RequestAborted:
            return
        except bodies.BodyRefused as refused:
            await self.send_response(_refusal(scope, refused), send)
            return
        began = time.perf_counter()
        try:
            set_script_prefix(get_script_prefix(scope))
            request, refusal = self.create_request(scope, body)
            response = refusal if request is None else await self._respond_in_thread(request)
            if response is None:
                raise RuntimeError("neither a request nor a reason why there is none")
            telemetry.answered(request, scope["method"], response.status_code, time.perf_counter() - began)
            if response.streaming:
                await self._stream(response, receive, send)
            else:
                await self.send_response(response, send)
        finally:
            body.close()

    def _respond(self, request: HttpRequest) -> HttpResponseBase:
        """Runs in the thread, from the first signal to the last, so that it gives back the connection that it took."""
        signals.request_started.send(sender=type(self))
        response: HttpResponseBase = self.get_response(request)
        response._handler_class = type(self)  # type: ignore[attr-defined]  # the sender of the last signal
        if isinstance(response, FileResponse):
            response.block_size = self.chunk_size
        if response.streaming:
            close_old_connections()  # its content is read elsewhere
        else:
            response.close()
        return response

    async def _stream(self, response: HttpResponseBase, receive: Receive, send: Send) -> None:
        """Sends piece by piece, until the end or until nobody listens. Files, static ones too, are read in a thread:
        Django would read them whole before it sends their first byte."""
        if isinstance(response, StreamingHttpResponse) and not response.is_async:
            response.streaming_content = _in_turns(cast(Iterator[bytes], response.streaming_content))
        sending = asyncio.create_task(self.send_response(response, send))
        gone = asyncio.ensure_future(receive())
        try:
            await asyncio.wait((sending, gone), return_when=asyncio.FIRST_COMPLETED)
        finally:
            for task in (gone, sending):
                if not task.done():
                    task.cancel()
            await asyncio.gather(gone, sending, return_exceptions=True)
            await sync_to_async(response.close)()
        if not sending.cancelled() and (error := sending.exception()):
            raise error


def _refusal(scope: Mapping[str, Any], refused: bodies.BodyRefused) -> HttpResponse:
    """The connection ends with it: the rest of the body is not waited for. No middleware has seen the request, so it gets its
    id here."""
    asked = HttpRequest()
    asked.id = token_hex(6)  # type: ignore[attr-defined]
    logger.warning("request %s to %s: %s", asked.id, scope["path"], refused, extra={"request_id": asked.id})  # type: ignore[attr-defined]
    response: HttpResponse
    if scope["path"].startswith("/api/"):
        response = JsonResponse(error_body(asked, "body_refused", str(refused)), status=refused.status)
    else:
        said = f"{refused} (Request {asked.id})"  # type: ignore[attr-defined]
        response = HttpResponse(said, status=refused.status, content_type="text/plain; charset=utf-8")
    telemetry.refused(scope["method"], refused.status)
    response["X-Request-Id"] = asked.id  # type: ignore[attr-defined]
    for name, value in (GUARDS | (HSTS if scope.get("scheme") == "https" else {})).items():
        response[name] = value
    response["Connection"] = "close"
    response["Content-Length"] = str(len(response.content))
    return response


async def _in_turns(pieces: Iterator[bytes]) -> AsyncIterator[bytes]:
    """Each piece is made in a thread in a turn of its own, so that others are answered in between."""
    take = sync_to_async(partial(next, pieces, None))
    while (piece := await take()) is not None:
        yield piece
