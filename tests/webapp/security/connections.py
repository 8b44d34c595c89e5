"""A part that small servers of these tests share."""

import socket
from collections.abc import Iterator


def accept_connections(line: socket.socket) -> Iterator[socket.socket]:
    """Accepts the connections to a listening socket until the socket is closed."""
    while True:
        try:
            client, _ = line.accept()
        except OSError:
            return
        yield client
