"""HTTP without a network: the client's requests go to Django's test client, in this process and its transaction."""

from collections.abc import Callable

import httpx
from django.test import Client


class InProcess(httpx.BaseTransport):
    """`away(request)` says whether the server does not answer this request. `lost(request)` says whether the server carries the request out
    but its answer is lost.
    """

    def __init__(self) -> None:
        self.client = Client(raise_request_exception=True)
        self.asked: list[str] = []
        self.away: Callable[[httpx.Request], bool] = lambda request: False
        self.lost: Callable[[httpx.Request], bool] = lambda request: False

    def handle_request(self, request: httpx.Request) -> httpx.Response:
        self.asked.append(f"{request.method} {request.url.path}")
        if self.away(request):
            raise httpx.ConnectError("refused")
        answer = self.client.generic(
            request.method,
            request.url.raw_path.decode(),
            request.read(),
            content_type=request.headers.get("content-type", "application/octet-stream"),
            headers={
                name: value
                for name, value in request.headers.items()
                if name in ("authorization", "idempotency-key", "range")
            },
        )
        if self.lost(request):
            raise httpx.ReadError("the connection broke")
        content = b"".join(answer) if answer.streaming else answer.content
        return httpx.Response(answer.status_code, headers=dict(answer.headers), content=content)
