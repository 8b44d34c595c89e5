"""A part that small servers of these tests share."""

import socket
from collections.abc import Iterator


def accepted(line: socket.socket) -> Iterator[socket.socket]:
    """The connections to a listening socket, until somebody closes it."""
    while True:
        try:
            client, _ = line.accept()
        except OSError:
            return
        yield client
