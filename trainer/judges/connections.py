"""POSTs to one URL over many connections, kept open, and never to an address that is refused.

aiohttp, because a judge has hundreds of requests in flight, and the processor time of the usual SDKs grows with their number.
"""

import re
import socket
import ssl
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

import aiohttp
from yarl import URL

# vLLM and SGLang answer through uvicorn, which closes an idle connection after 5 s: a request sent at that very moment is lost
IDLE_S = 4.0
CONNECT_S = 10.0
_HEADER = re.compile(r"[\x21-\x7e][\x20-\x7e]*")


class Refused(OSError):
    """The address may not be connected to; the message says why."""


class BadAddress(ValueError):
    """No URL that could be posted to."""


class TooLong(OSError):
    """The answer is longer than allowed."""


class Unanswered(OSError):
    """The connection was made, or could have been, and then no whole answer came."""


@dataclass(frozen=True)
class Answer:
    """`headers` by their name in any case."""

    status: int
    headers: Mapping[str, str]
    body: bytes


class Connections:
    """`await connections.post(data)` to one URL, from any number of tasks; each request in flight has its connection.

    `refuse` sees each IP address at the last moment, whether it stood in the URL or came from the resolver, and gives the
    reason why it may not be connected to, or "": nothing can change between the check and the connection. Redirects are
    answers like any other. Proxies are not used, since they would connect where nobody checks.
    """

    def __init__(
        self, url: str, headers: dict[str, str], *, longest: int, refuse: Callable[[str], str] | None = None
    ) -> None:
        self._url, self.longest = _address(url), longest
        connector = aiohttp.TCPConnector(
            limit=0,  # the client limits its requests
            keepalive_timeout=IDLE_S,
            socket_factory=_checked(refuse),
            ssl=ssl.create_default_context(),
        )
        self._session = aiohttp.ClientSession(
            connector=connector,
            cookie_jar=aiohttp.DummyCookieJar(),
            headers={"Accept": "application/json", "Accept-Encoding": "identity", **_sendable(headers)},
            timeout=aiohttp.ClientTimeout(sock_connect=CONNECT_S),
        )

    async def post(self, data: bytes, timeout_s: float) -> Answer:
        """The answer, whatever its status. Raises TimeoutError after `timeout_s`, else an OSError that says what happened."""
        limits = aiohttp.ClientTimeout(total=timeout_s, sock_connect=min(CONNECT_S, timeout_s))
        try:
            async with self._session.post(self._url, data=data, timeout=limits, allow_redirects=False) as response:
                return Answer(response.status, response.headers, await self._body(response))
        except aiohttp.ClientConnectorError as error:
            raise (error.os_error if isinstance(error.os_error, Refused) else Unanswered(str(error))) from error
        except aiohttp.ConnectionTimeoutError as error:
            if timeout_s < CONNECT_S:
                raise
            raise Unanswered(f"no connection within {CONNECT_S:g} s") from error
        except aiohttp.ServerDisconnectedError as error:
            raise Unanswered("the connection was closed without an answer") from error
        except aiohttp.ClientPayloadError as error:
            raise Unanswered(f"the connection was closed in the middle of its answer: {error}") from error
        except aiohttp.ClientError as error:
            raise Unanswered(f"the answer cannot be read: {error}") from error

    async def close(self) -> None:
        await self._session.close()

    async def _body(self, response: aiohttp.ClientResponse) -> bytes:
        if response.content_length is not None and response.content_length <= self.longest:
            return await response.read()
        parts, size = [], 0
        while part := await response.content.readany():
            parts.append(part)
            size += len(part)
            if size > self.longest:
                response.close()  # the rest is not worth reading, so the connection cannot be used again
                raise TooLong(f"an answer of more than {self.longest:,} bytes was broken off")
        return parts[0] if len(parts) == 1 else b"".join(parts)


def _checked(refuse: Callable[[str], str] | None) -> Callable[[Any], socket.socket]:
    def make(info: Any) -> socket.socket:
        family, kind, protocol, _, address = info
        if refuse is not None and (reason := refuse(str(address[0]).partition("%")[0])):
            raise Refused(reason)
        return socket.socket(family, kind, protocol)

    return make


def _address(url: str) -> URL:
    try:
        found = URL(url)
    except ValueError as error:
        raise BadAddress(f"{url} is no address: {error}") from error
    if found.scheme not in ("http", "https") or not found.host:
        raise BadAddress(f"{url} is no address of a chat API")
    return found


def _sendable(headers: dict[str, str]) -> dict[str, str]:
    for name, value in headers.items():
        if not _HEADER.fullmatch(value):
            raise BadAddress(f"the header {name} holds characters that cannot be sent")
    return headers
