"""HTTP without a network: the client's requests go to Django's test client, in this process and its transaction."""

from collections.abc import Callable, Iterator

import httpx
from django.test import Client

PASSED = ("authorization", "idempotency-key", "range", "if-range")


class Broken(httpx.SyncByteStream):
    """Content whose connection breaks after some bytes."""

    def __init__(self, content: bytes) -> None:
        self.content = content

    def __iter__(self) -> Iterator[bytes]:
        yield self.content
        raise httpx.ReadError("the connection broke")


class InProcess(httpx.BaseTransport):
    """`away(request)` says whether the server does not answer this request. `lost(request)` says whether the server carries the request out
    but its answer is lost. `cut(request)` is the number of bytes after which the connection breaks, or None.
    """

    def __init__(self) -> None:
        self.client = Client(raise_request_exception=True)
        self.asked: list[str] = []
        self.ranges: list[str] = []
        self.away: Callable[[httpx.Request], bool] = lambda request: False
        self.lost: Callable[[httpx.Request], bool] = lambda request: False
        self.cut: Callable[[httpx.Request], int | None] = lambda request: None

    def handle_request(self, request: httpx.Request) -> httpx.Response:
        self.asked.append(f"{request.method} {request.url.path}")
        self.ranges.append(request.headers.get("range", ""))
        if self.away(request):
            raise httpx.ConnectError("refused")
        answer = self.client.generic(
            request.method,
            request.url.raw_path.decode(),
            request.read(),
            content_type=request.headers.get("content-type", "application/octet-stream"),
            headers={name: value for name, value in request.headers.items() if name in PASSED},
        )
        if self.lost(request):
            raise httpx.ReadError("the connection broke")
        content = b"".join(answer) if answer.streaming else answer.content
        headers = dict(answer.headers)
        if (at := self.cut(request)) is not None:
            return httpx.Response(answer.status_code, headers=headers, stream=Broken(content[:at]))
        return httpx.Response(answer.status_code, headers=headers, content=content)
