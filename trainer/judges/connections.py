"""How the chat client connects: many connections, kept open, and never to an address that is refused."""

import socket
from collections.abc import Callable
from typing import Any

import aiohttp

# vLLM and SGLang answer through uvicorn, which closes an idle connection after 5 s: a request sent at that very moment is lost
IDLE_S = 4.0


class Refused(OSError):
    """The address may not be connected to; the message says why."""


def connector(refuse: Callable[[str], str] | None) -> aiohttp.TCPConnector:
    """The number of connections is not limited here: the client limits its requests.

    `refuse` sees each address at the last moment, whether it stood in the URL or came from the resolver, so nothing can
    change between the check and the connection.
    """

    def make(info: Any) -> socket.socket:
        family, kind, protocol, _, address = info
        if refuse is not None and (reason := refuse(str(address[0]).partition("%")[0])):
            raise Refused(reason)
        return socket.socket(family, kind, protocol)

    return aiohttp.TCPConnector(limit=0, keepalive_timeout=IDLE_S, socket_factory=make)
