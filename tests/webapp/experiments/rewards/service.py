"""A user's own reward service, on this machine, which checks signatures."""

import json
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any

from trainer.rewards.signing import signature

SECRET = "whsec_" + "c2VjcmV0IG9mIHRoZSB0ZXN0IGFuZCBvZiBub2JvZHk="  # noqa: S105


class RewardService(ThreadingHTTPServer):
    """The value of a response is its length divided by 100. `asked` has the received requests, `status` is the status of the answers, and
    `body`, if given, replaces the values.
    """

    def __init__(self) -> None:
        super().__init__(("127.0.0.1", 0), _Handler)
        self.asked: list[Any] = []
        self.status, self.signed = 200, 0
        self.body: bytes | None = None
        self.inside = self.most_inside = 0
        self.lock, self.gate = threading.Lock(), threading.Event()
        self.gate.set()

    @property
    def url(self) -> str:
        return f"http://127.0.0.1:{self.server_port}/score?team=ours"


class _Handler(BaseHTTPRequestHandler):
    server: RewardService

    def do_POST(self) -> None:
        body = self.rfile.read(int(self.headers["content-length"]))
        responses = json.loads(body)["responses"]
        sent_at = int(self.headers.get("webhook-timestamp", 0))
        wanted = signature(SECRET, self.headers.get("webhook-id", ""), sent_at, body)["webhook-signature"]
        with self.server.lock:
            self.server.inside += 1
            self.server.most_inside = max(self.server.most_inside, self.server.inside)
            self.server.asked += responses
            self.server.signed += self.headers.get("webhook-signature") == wanted
        self.server.gate.wait(20)
        with self.server.lock:
            self.server.inside -= 1
        values = [{"value": len(each["response"]) / 100, "why": "its length"} for each in responses]
        answer = self.server.body or json.dumps({"values": values}).encode()
        self.send_response(self.server.status)
        self.send_header("Content-Length", str(len(answer)))
        self.end_headers()
        self.wfile.write(answer)

    def log_message(self, *_: Any) -> None:
        pass


@contextmanager
def reward_service() -> Iterator[RewardService]:
    server = RewardService()
    thread = threading.Thread(target=server.serve_forever, daemon=True)
    thread.start()
    yield server
    server.gate.set()
    server.shutdown()
    server.server_close()
    thread.join(10)
