"""A bucket on this machine that speaks S3, and fails as it is told to."""

import re
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

import httpx
from moto.moto_server.werkzeug_app import DomainDispatcherApplication, MotoRequestHandler, create_backend_app
from werkzeug.serving import make_server

# whoever signs may do all; moto looks at no signature
SIGNED = {
    "Authorization": "AWS4-HMAC-SHA256 Credential=A/20260101/us-east-1/s3/aws4_request, SignedHeaders=host, Signature=0"
}
Failing = Callable[[str, str], int | None]  # method and path of a request -> the status to answer with, if any


class BucketServer:
    def __init__(self) -> None:
        self._app: Any = DomainDispatcherApplication(create_backend_app)
        self.asked: list[tuple[str, str]] = []
        self.failing: Failing = lambda method, path: None
        self._server = make_server("127.0.0.1", 0, self._answer, threaded=True, request_handler=Quiet)
        self.url = f"http://127.0.0.1:{self._server.server_port}"

    def _answer(self, environ: dict[str, Any], start: Any) -> Any:
        method, path = environ["REQUEST_METHOD"], environ["PATH_INFO"]
        self.asked.append((method, path))
        if status := self.failing(method, path):
            environ["wsgi.input"].read(int(environ.get("CONTENT_LENGTH") or 0))
            start(f"{status} No", [("Content-Length", "0")])
            return [b""]
        return self._app(environ, start)

    @contextmanager
    def running(self) -> Iterator["BucketServer"]:
        thread = threading.Thread(target=self._server.serve_forever, daemon=True)
        thread.start()
        try:
            yield self
        finally:
            self._server.shutdown()
            thread.join()
            self._server.server_close()

    def empty(self) -> None:
        """A new bucket `backups`, and nothing else."""
        self.failing, self.asked = lambda method, path: None, []
        httpx.post(f"{self.url}/moto-api/reset").raise_for_status()
        httpx.put(f"{self.url}/backups", headers=SIGNED).raise_for_status()

    def get(self, path: str) -> bytes:
        return httpx.get(f"{self.url}/backups/{path}", headers=SIGNED).raise_for_status().content

    def put(self, path: str, content: bytes) -> None:
        httpx.put(f"{self.url}/backups/{path}", content=content, headers=SIGNED).raise_for_status()

    def names(self) -> list[str]:
        return re.findall(r"<Key>(.*?)</Key>", httpx.get(f"{self.url}/backups?list-type=2", headers=SIGNED).text)

    def uploads(self) -> int:
        """Uploads that are not complete."""
        return httpx.get(f"{self.url}/backups?uploads", headers=SIGNED).text.count("<UploadId>")


class Quiet(MotoRequestHandler):
    def log_request(self, *told: Any) -> None: ...
