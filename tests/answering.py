"""A small HTTP server for tests of programs that ask other servers."""

import threading
from collections.abc import Iterator
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any


class Answering(BaseHTTPRequestHandler):
    """A handler. A test adds `do_GET` or `do_POST`, and these end with a call of `write`."""

    def sent(self) -> bytes:
        """The body of the request."""
        return self.rfile.read(int(self.headers["Content-Length"]))

    def write(self, body: bytes) -> None:
        """Answers 200 with this body."""
        self.send_response(200)
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)

    def log_message(self, format: str, *args: Any) -> None:
        """Logs nothing, because requests do not belong in the output of a test."""


@contextmanager
def serve(handler: type[Answering]) -> Iterator[ThreadingHTTPServer]:
    """Serves on a free port of this machine, in a thread. `address` is its address."""
    server = ThreadingHTTPServer(("127.0.0.1", 0), handler)
    threading.Thread(target=server.serve_forever, args=(0.02,), daemon=True).start()
    try:
        yield server
    finally:
        server.shutdown()
        server.server_close()


def address(server: ThreadingHTTPServer) -> str:
    return f"http://127.0.0.1:{server.server_port}"
