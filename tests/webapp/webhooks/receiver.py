"""A real HTTP server on loopback that keeps the requests, and answers as a test wants."""

import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer


@dataclass
class Receiver:
    """`answers` are used one after the other, and the last one for all further requests. Each is a status, or a function of the handler."""

    url: str = ""
    answers: list[int | Callable[[BaseHTTPRequestHandler], None]] = field(default_factory=lambda: [200])
    heard: list[tuple[str, dict[str, str], bytes]] = field(default_factory=list)

    def next_answer(self) -> int | Callable[[BaseHTTPRequestHandler], None]:
        return self.answers.pop(0) if len(self.answers) > 1 else self.answers[0]


@contextmanager
def run_receiver() -> Iterator[Receiver]:
    receiver = Receiver()

    class Handler(BaseHTTPRequestHandler):
        def do_POST(self) -> None:
            body = self.rfile.read(int(self.headers["content-length"]))
            receiver.heard.append((self.path, {k.lower(): v for k, v in self.headers.items()}, body))
            answer = receiver.next_answer()
            if callable(answer):
                answer(self)
                return
            self.send_response(answer)
            self.end_headers()
            self.wfile.write(b"thank you")

        def log_message(self, *args: object) -> None:
            """Logs nothing."""

    server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    receiver.url = f"http://127.0.0.1:{server.server_port}/hook?key=1"
    thread = threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.02})
    thread.start()
    try:
        yield receiver
    finally:
        server.shutdown()
        thread.join()
        server.server_close()
