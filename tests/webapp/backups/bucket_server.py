"""A bucket on this machine that speaks S3, and that fails when a test wants it to."""

import re
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

import httpx
from moto.server import ThreadedMotoServer

from tests.timeouts import SECONDS

# any key may do everything, because moto does not check signatures
SIGNED = {
    "Authorization": "AWS4-HMAC-SHA256 Credential=A/20260101/us-east-1/s3/aws4_request, SignedHeaders=host, Signature=0"
}
# method and path of a request -> the status of the answer, if a test sets one
Failing = Callable[[str, str], int | None]


class BucketServer:
    def __init__(self) -> None:
        self.asked: list[tuple[str, str]] = []
        self.failing: Failing = lambda method, path: None
        self._http = httpx.Client(headers=SIGNED, timeout=SECONDS)  # the first answer of moto takes a while
        self._server: Any = ThreadedMotoServer("127.0.0.1", 0, verbose=False)

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
        self._server.start()
        host, port = self._server.get_host_and_port()
        self.url = f"http://{host}:{port}"
        serving = self._server._server  # this function is asked for the answer at each request
        self._app, serving.app = serving.app, self._answer
        try:
            yield self
        finally:
            self._server.stop()

    def empty(self) -> None:
        """A new bucket `backups`, and nothing else."""
        self.failing, self.asked = lambda method, path: None, []
        self._http.post(f"{self.url}/moto-api/reset").raise_for_status()
        self._http.put(f"{self.url}/backups").raise_for_status()

    def get(self, path: str) -> bytes:
        return self._http.get(f"{self.url}/backups/{path}").raise_for_status().content

    def put(self, path: str, content: bytes) -> None:
        self._http.put(f"{self.url}/backups/{path}", content=content).raise_for_status()

    def names(self) -> list[str]:
        return re.findall(r"<Key>(.*?)</Key>", self._http.get(f"{self.url}/backups?list-type=2").text)

    def uploads(self) -> int:
        """The uploads that are not complete."""
        return self._http.get(f"{self.url}/backups?uploads").text.count("<UploadId>")
