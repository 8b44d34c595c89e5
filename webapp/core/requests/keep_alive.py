"""HTTP connections that end when no request comes.

The web server limits the time between two requests only: a connection that sends nothing, or a header a minute, would stay for
ever and cost a file each.
"""

import asyncio

from uvicorn.protocols.http.httptools_impl import HttpToolsProtocol

HEADERS_S = 20.0  # from the connection's, or the request's, first byte to the end of its headers
HEADERS_BYTES = 65_536


class KeepAliveProtocol(HttpToolsProtocol):
    """Named to uvicorn as `--http webapp.core.requests.keep_alive:KeepAliveProtocol`."""

    _deadline: asyncio.TimerHandle | None = None
    _header_bytes = 0

    def connection_made(self, transport: asyncio.Transport) -> None:  # type: ignore[override]
        super().connection_made(transport)
        self._wait()

    def connection_lost(self, exc: Exception | None) -> None:
        self._stop_waiting()
        super().connection_lost(exc)

    def on_message_begin(self) -> None:
        super().on_message_begin()
        self._wait()

    def data_received(self, data: bytes) -> None:
        super().data_received(data)
        if self._deadline is not None:  # still in the headers
            self._header_bytes += len(data)
            if self._header_bytes > HEADERS_BYTES:
                self.transport.abort()

    def on_headers_complete(self) -> None:
        self._stop_waiting()
        self._header_bytes = 0
        super().on_headers_complete()

    def _wait(self) -> None:
        self._stop_waiting()
        self._deadline = self.loop.call_later(HEADERS_S, self.transport.abort)

    def _stop_waiting(self) -> None:
        if self._deadline is not None:
            self._deadline.cancel()
            self._deadline = None
