"""One POST to an address that someone typed in: bounded in time and size, never redirected, never to a closed network.

`httpcore` instead of `httpx`, because it lets us open the connection ourselves: the name is resolved once, and what
was checked is what is connected to. TLS still names and verifies the host.
"""

import ssl
from collections.abc import Iterable
from dataclasses import dataclass
from functools import cache
from time import monotonic
from typing import Any

import httpcore

from . import targets

TIMEOUT_S = 10.0  # for the whole exchange: resolving, connecting, sending and the answer
EXCERPT = 2_000  # bytes of the answer that are read and kept


@dataclass(frozen=True)
class ReceiverReply:
    status: int
    excerpt: str
    location: str


class NoAnswer(Exception):
    """The receiver could not be reached, or did not answer in time; the message says what happened."""


def post(url: str, headers: dict[str, str], body: bytes, timeout_s: float = TIMEOUT_S) -> ReceiverReply:
    """Raises NoAnswer, and targets.Refused if the address may not be connected to."""
    parsed = targets.parse(url)
    target = httpcore.URL(
        scheme=parsed.raw_scheme, host=parsed.raw_host, port=parsed.port, target=parsed.raw_path or b"/"
    )
    sent = {"host": parsed.netloc.decode(), "content-length": str(len(body)), "connection": "close", **headers}
    line = _Line(parsed.scheme, timeout_s)
    try:
        with (
            httpcore.ConnectionPool(ssl_context=_tls(), network_backend=line) as pool,
            pool.stream("POST", target, headers=list(sent.items()), content=body) as response,
        ):
            return _answer(response)
    except targets.DestinationRefused:
        raise
    except httpcore.TimeoutException as error:
        raise NoAnswer(f"no complete answer within {timeout_s:g} s") from error
    except (httpcore.NetworkError, httpcore.ProtocolError, OSError) as error:
        raise NoAnswer(str(error) or type(error).__name__) from error


def _answer(response: httpcore.Response) -> ReceiverReply:
    held = b""
    for chunk in response.iter_stream():
        held += chunk
        if len(held) >= EXCERPT:
            break
    location = dict(response.headers).get(b"Location") or dict(response.headers).get(b"location") or b""
    text = held[:EXCERPT].decode("utf-8", "replace").replace("\0", "␀")
    return ReceiverReply(response.status, text, location.decode("latin-1"))


@cache
def _tls() -> ssl.SSLContext:
    return httpcore.default_ssl_context()


class _Line(httpcore.NetworkBackend):
    """Connects to the addresses it has checked itself. One deadline holds for everything that follows: a receiver that
    sends a byte now and then would outlast any limit per read."""

    def __init__(self, scheme: str, timeout_s: float) -> None:
        self.scheme, self.deadline = scheme, monotonic() + timeout_s
        self.inner = httpcore.SyncBackend()

    def left(self) -> float:
        remaining = self.deadline - monotonic()
        if remaining <= 0:
            raise httpcore.ReadTimeout
        return remaining

    def connect_tcp(
        self,
        host: str,
        port: int,
        timeout: float | None = None,
        local_address: str | None = None,
        socket_options: Iterable[Any] | None = None,
    ) -> httpcore.NetworkStream:
        problem: Exception | None = None
        for address in targets.addresses(host, port, self.scheme):
            try:
                return _NetworkStream(self, self.inner.connect_tcp(address, port, self.left()))
            except httpcore.ConnectError as error:
                problem = error
        raise problem or httpcore.ConnectError(f"{host} has no address")


class _NetworkStream(httpcore.NetworkStream):
    def __init__(self, line: _Line, inner: httpcore.NetworkStream) -> None:
        self.line, self.inner = line, inner

    def read(self, max_bytes: int, timeout: float | None = None) -> bytes:
        return self.inner.read(max_bytes, self.line.left())

    def write(self, buffer: bytes, timeout: float | None = None) -> None:
        self.inner.write(buffer, self.line.left())

    def close(self) -> None:
        self.inner.close()

    def start_tls(
        self, ssl_context: ssl.SSLContext, server_hostname: str | None = None, timeout: float | None = None
    ) -> httpcore.NetworkStream:
        return _NetworkStream(self.line, self.inner.start_tls(ssl_context, server_hostname, self.line.left()))

    def get_extra_info(self, info: str) -> Any:
        return self.inner.get_extra_info(info)
