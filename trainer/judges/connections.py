"""HTTP/1.1 to one host over many connections, kept open, and never to an address that is refused.

It is written for judges, which have hundreds of small POSTs in flight. The parser is that of uvicorn. A request costs one write, one
future and the callbacks of the parser: a third of the processor time of a general client.
"""

import asyncio
import re
import ssl
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from ipaddress import ip_address
from urllib.parse import quote, urlsplit

import httptools

# vLLM and SGLang answer through uvicorn, which closes an idle connection after 5 s: a request sent at that very moment is lost
IDLE_S = 4.0
CONNECT_S = 10.0
NAMES_S = 30.0  # this long the answer of the resolver is used
_HEADER = re.compile(r"[\x21-\x7e][\x20-\x7e]*")


class ConnectionRefused(OSError):
    """The address may not be connected to; the message says why."""


class BadAddress(ValueError):
    """The URL cannot be used for a POST."""


class TooLong(OSError):
    """The answer is longer than allowed."""


class Unanswered(OSError):
    """There was a connection, or there may have been one, but no whole answer came."""


@dataclass(frozen=True)
class HttpReply:
    """`headers` by lower-case name."""

    status: int
    headers: dict[str, str]
    body: bytes


class Connections:
    """`await connections.post(data)` to one URL, from any number of tasks; each request in flight has its connection.

    `refuse` is called with each IP address at the last moment, whether it comes from the URL or from the resolver. It returns why the
    address is refused, or "": so nothing can change between the check and the connection. A redirect is an answer like any other.
    Proxies are not used.
    """

    def __init__(
        self, url: str, headers: dict[str, str], *, longest: int, refuse: Callable[[str], str] | None = None
    ) -> None:
        self.longest, self.refuse = longest, refuse
        self._scheme, self._host, self._port, self._head = _request_head(url, headers)
        self._idle: list[tuple[_Connection, float]] = []
        self._names: tuple[list[str], float] = ([], 0.0)
        self._naming = asyncio.Lock()
        self._tls = ssl.create_default_context() if self._scheme == "https" else None

    async def post(self, data: bytes, timeout_s: float, headers: Mapping[str, str] | None = None) -> HttpReply:
        """The answer, of any status. Raises TimeoutError after `timeout_s`, else an OSError that says what happened.

        `headers` are only for this request, in ASCII; they come after the headers of all requests.
        """
        loop = asyncio.get_running_loop()
        ends = loop.time() + timeout_s
        connection = self._kept(loop.time()) or await self._connected(timeout_s)
        own = "".join(f"{name}: {value}\r\n" for name, value in headers.items()).encode("ascii") if headers else b""
        answer = await connection.exchange(b"%b%d\r\n%b\r\n%b" % (self._head, len(data), own, data), ends)
        if connection.usable:
            self._idle.append((connection, loop.time()))
        return answer

    def close(self) -> None:
        """Closes the idle connections. Connections in use end with their tasks."""
        while self._idle:
            self._idle.pop()[0].abort()

    def _kept(self, now: float) -> "_Connection | None":
        while self._idle:
            connection, since = self._idle.pop()
            if connection.usable and now - since < IDLE_S:
                return connection
            connection.abort()
        return None

    async def _connected(self, timeout_s: float) -> "_Connection":
        try:
            async with asyncio.timeout(min(timeout_s, CONNECT_S)):
                return await self._connect()
        except TimeoutError as error:
            if timeout_s < CONNECT_S:
                raise
            raise Unanswered(f"no connection within {CONNECT_S:g} s") from error

    async def _connect(self) -> "_Connection":
        loop = asyncio.get_running_loop()
        failed: OSError | None = None
        for address in await self._addresses():
            if self.refuse is not None and (reason := self.refuse(address.partition("%")[0])):
                raise ConnectionRefused(reason)
            try:
                _, made = await loop.create_connection(
                    lambda: _Connection(self.longest),
                    address,
                    self._port,
                    ssl=self._tls,
                    server_hostname=self._host if self._tls else None,
                )
                return made
            except OSError as error:
                failed = error
        raise Unanswered(f"cannot connect to {self._host}:{self._port}: {failed}") from failed

    async def _addresses(self) -> list[str]:
        loop = asyncio.get_running_loop()
        if _is_address(self._host):
            return [self._host]
        async with self._naming:  # the first of many calls asks the resolver for all
            found, until = self._names
            if loop.time() >= until:
                try:
                    infos = await loop.getaddrinfo(self._host, self._port, type=1)
                except OSError as error:
                    raise Unanswered(f"the host {self._host} is not known: {error}") from error
                found = list(dict.fromkeys(str(info[4][0]) for info in infos))
                self._names = (found, loop.time() + NAMES_S)
        return found


class _Connection(asyncio.Protocol):
    def __init__(self, longest: int) -> None:
        self.longest = longest
        self.usable = True
        self._parser = httptools.HttpResponseParser(self)
        self._transport: asyncio.Transport | None = None
        self._waiting: asyncio.Future[HttpReply] | None = None
        self._parts: list[bytes] = []
        self._headers: dict[str, str] = {}
        self._size, self._begun = 0, False

    async def exchange(self, request: bytes, ends: float) -> HttpReply:
        assert self._transport is not None  # noqa: S101  # connected before it is handed out
        loop = asyncio.get_running_loop()
        waiting: asyncio.Future[HttpReply] = loop.create_future()
        self._waiting = waiting
        clock = loop.call_at(ends, self._fail, TimeoutError())
        try:
            self._transport.write(request)
            return await waiting
        finally:
            clock.cancel()
            self._waiting = None
            if not waiting.done() or waiting.cancelled() or waiting.exception():
                self.abort()  # the rest of this answer would be taken for the answer to the next request

    def abort(self) -> None:
        self.usable = False
        if self._transport is not None:
            self._transport.abort()

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        self._transport = transport  # type: ignore[assignment]  # a stream's transport; uvloop's share no class with asyncio's

    def data_received(self, data: bytes) -> None:
        if self._waiting is None:  # no request waits: a late answer, or a server that says good-bye
            self.abort()
            return
        try:
            self._parser.feed_data(data)
        except httptools.HttpParserUpgrade:
            self._fail(Unanswered("the answer wants another protocol than HTTP"))
        except httptools.HttpParserError as error:
            self._fail(Unanswered(f"the answer is no HTTP: {error}"))

    def connection_lost(self, error: Exception | None) -> None:
        self.usable = False
        until_closed = self._begun and not self._headers.keys() & {"content-length", "transfer-encoding"}
        if until_closed and error is None:
            self.on_message_complete()
        how = "in the middle of its answer" if self._begun else "without an answer"
        self._fail(Unanswered(f"the connection was closed {how}" + (f": {error}" if error else "")))

    def on_message_begin(self) -> None:
        self._parts, self._headers, self._size, self._begun = [], {}, 0, False

    def on_header(self, name: bytes, value: bytes) -> None:
        self._headers[name.decode("latin-1").lower()] = value.decode("latin-1")

    def on_headers_complete(self) -> None:
        self._begun = self._parser.get_status_code() >= 200

    def on_body(self, part: bytes) -> None:
        self._parts.append(part)
        self._size += len(part)
        if self._size > self.longest:
            self._fail(TooLong(f"an answer of more than {self.longest:,} bytes was broken off"))
            self.abort()

    def on_message_complete(self) -> None:
        if not self._begun:  # 100 Continue and its like announce the answer
            return
        self._begun = False
        self.usable = self.usable and self._parser.should_keep_alive()
        if self._waiting is not None and not self._waiting.done():
            body = self._parts[0] if len(self._parts) == 1 else b"".join(self._parts)
            self._waiting.set_result(HttpReply(self._parser.get_status_code(), self._headers, body))

    def _fail(self, error: OSError) -> None:
        if self._waiting is not None and not self._waiting.done():
            self._waiting.set_exception(error)


def _request_head(url: str, headers: dict[str, str]) -> tuple[str, str, int, bytes]:
    """The scheme, the host, the port, and the request up to the value of its length. Raises BadAddress."""
    try:
        parts = urlsplit(url)
        host = (parts.hostname or "").rstrip(".") if _is_address(parts.hostname or "") else _ascii(parts.hostname or "")
        port = parts.port or (443 if parts.scheme == "https" else 80)
    except ValueError as error:
        raise BadAddress(f"{url} is not an address: {error}") from error
    if parts.scheme not in ("http", "https") or not host:
        raise BadAddress(f"{url} is not an address of a chat API")
    path = quote(parts.path or "/", safe="/%:@!$&'()*+,;=-._~")
    path += f"?{quote(parts.query, safe='/%:@!$&()*+,;=-._~?')}" if parts.query else ""
    shown = f"[{host}]" if ":" in host else host
    shown += f":{parts.port}" if parts.port else ""
    lines = {"Host": shown, "Accept": "application/json", "Accept-Encoding": "identity", **headers}
    for name, value in lines.items():
        if not _HEADER.fullmatch(value):
            raise BadAddress(f"the header {name} holds characters that cannot be sent")
    head = "".join(f"{name}: {value}\r\n" for name, value in lines.items())
    return parts.scheme, host, port, f"POST {path} HTTP/1.1\r\n{head}Content-Length: ".encode("ascii")


def _ascii(host: str) -> str:
    return host.encode("idna").decode("ascii")


def _is_address(host: str) -> bool:
    try:
        ip_address(host.partition("%")[0])
    except ValueError:
        return False
    return True
