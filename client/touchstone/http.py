"""Requests with a token. They are tried again while the server is away, and never count twice. Errors have the server's words."""

import json
import os
import random
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, BinaryIO, cast
from uuid import uuid4

import httpx

from .types import Cost, Point, Run

NAME = "touchstone"
USER_AGENT = f"{NAME}-client/1"
ADDRESS, TOKEN = "TOUCHSTONE_URL", "TOUCHSTONE_TOKEN"  # noqa: S105  names of variables
TOKEN_REFUSED = (
    "The server does not accept the token. It is wrong, or it was withdrawn, or its time is over. "  # noqa: S105  no secret
    f"Make one under Settings → API tokens. Then run `touchstone login`, or set {TOKEN}."
)
DEFAULT_ADDRESS = "http://127.0.0.1:8000"
AGAIN = (429, 502, 503, 504)
TRIES = 6
LONGEST_PAUSE_S = 30.0
TIMEOUT_S = 60.0
LONGEST_SILENCE_S = 60.0  # a feed sends something every quarter of a minute
OVER = ("finished", "failed", "stopped")  # states of a run


class Away(Exception):
    """The server did not answer any of the tries."""


class ApiError(Exception):
    """The server refused a request: `status`, `code` for programs, and the wrong fields."""

    def __init__(self, status: int, code: str, message: str, fields: dict[str, str] | None = None) -> None:
        self.status, self.code, self.fields = status, code, fields or {}
        told = "; ".join(f"{path}: {why}" for path, why in self.fields.items())
        super().__init__(f"{message} {told}".strip() if told else message)


def _error(answer: httpx.Response) -> ApiError:
    try:
        body = answer.json()
    except ValueError:
        return ApiError(answer.status_code, "error", answer.text[:500] or answer.reason_phrase)
    if isinstance(body, dict) and "error_code" in body:  # of the MLflow protocol
        return ApiError(answer.status_code, str(body["error_code"]), str(body.get("message", "")))
    error = body.get("error", {}) if isinstance(body, dict) else {}
    if not isinstance(error, dict):  # not the words of our server
        return ApiError(answer.status_code, "error", str(error))
    fields = {each["path"]: each["message"] for each in error.get("fields", [])}
    return ApiError(answer.status_code, error.get("code", "error"), error.get("message", ""), fields)


@dataclass
class Server:
    """The server at `address`. Without arguments, TOUCHSTONE_URL and TOUCHSTONE_TOKEN give its address and the token."""

    address: str = field(default_factory=lambda: os.environ.get(ADDRESS, DEFAULT_ADDRESS))
    token: str = field(default_factory=lambda: os.environ.get(TOKEN, ""), repr=False)
    transport: httpx.BaseTransport | None = None
    tries: int = TRIES
    sleep: Callable[[float], None] = time.sleep

    def __post_init__(self) -> None:
        self.address, self.token = self.address.strip(), self.token.strip()
        if not (self.token.isascii() and self.token.isprintable()):
            raise ValueError("The token has a character that no token has: copy it once more.")
        self._client = httpx.Client(
            base_url=self.address.rstrip("/"),
            headers={"Authorization": f"Bearer {self.token}", "User-Agent": USER_AGENT},
            timeout=TIMEOUT_S,
            transport=self.transport,
        )

    def _away(self, error: httpx.TransportError) -> Away:
        if isinstance(error, httpx.UnsupportedProtocol):
            return Away(f"The address {self.address} cannot be used: it must begin with http:// or https://.")
        return Away(f"{self.address} does not answer: {error}")

    def ask(
        self, method: str, path: str, *, key: str | None = None, content: bytes | None = None, **given: Any
    ) -> httpx.Response:
        """The answer. With a `key`, a request that arrives twice counts once: every try sends the same key. Raises ApiError, Away."""
        headers = {"Idempotency-Key": key} if key else {}
        problem = ""
        for attempt in range(self.tries):
            try:
                answer = self._client.request(method, path, headers=headers, content=content, **given)
            except httpx.UnsupportedProtocol as error:
                raise self._away(error) from None
            except httpx.TransportError as error:
                problem = str(self._away(error))
                pause = 0.0
            else:
                if answer.status_code not in AGAIN:
                    if answer.is_success:
                        return answer
                    raise _error(answer)
                problem = str(_error(answer)) or f"{self.address} answers {answer.status_code}"
                pause = _seconds(answer.headers.get("Retry-After"))
            if attempt + 1 < self.tries:
                self.sleep(_pause(attempt, pause))
        raise Away(problem)

    def events(
        self, path: str, body: dict[str, Any] | None = None, silence_s: float | None = None
    ) -> Iterator[tuple[str, dict[str, Any]]]:
        """(name, data) of server-sent events as they come, by POST if there is a `body`. They are requested once, and past events are not
        repeated. After `silence_s` without an event, the server counts as away. Raises ApiError, Away."""
        given: dict[str, Any] = {"method": "GET"} if body is None else {"method": "POST", "json": body}
        try:
            with self._client.stream(
                url=f"/api/v1{path}", timeout=httpx.Timeout(TIMEOUT_S, read=silence_s), **given
            ) as answer:
                if not answer.is_success:
                    answer.read()
                    raise _error(answer)
                name = "message"
                for line in answer.iter_lines():
                    field, _, value = line.partition(": ")
                    if field == "event":
                        name = value
                    elif field == "data":
                        yield name, json.loads(value)
                        name = "message"
        except httpx.TransportError as error:
            raise self._away(error) from error

    def follow(self, run: int) -> Iterator[dict[str, Any]]:
        """The messages about a run, as docs/api.md lists them, until the run is over. After an interruption they begin again with a message
        `now`: a program that draws curves then loads the missing points. Raises ApiError, Away."""
        failed = 0
        while True:
            try:
                for name, told in self.events(f"/runs/{run}/feed", silence_s=LONGEST_SILENCE_S):
                    failed = 0
                    yield told
                    if name == "gone" or (name in ("now", "run") and told["state"] in OVER):
                        return
            except (Away, ApiError) as error:
                failed += 1
                if failed == self.tries or (isinstance(error, ApiError) and error.status not in AGAIN):
                    raise
            self.sleep(_pause(failed))

    def save(self, path: str, to: BinaryIO, **query: Any) -> httpx.Headers:
        """Writes the content of an address, such as a `download`, piece by piece. Raises ApiError, Away."""
        wanted = {name: value for name, value in query.items() if value is not None}
        try:
            with self._client.stream("GET", path, params=wanted) as answer:
                if not answer.is_success:
                    answer.read()
                    raise _error(answer)
                for piece in answer.iter_bytes():
                    to.write(piece)
                return answer.headers
        except httpx.TransportError as error:
            raise self._away(error) from error

    def import_file(self, path: Path, name: str = "", **form: Any) -> dict[str, Any]:
        """Sends a file as a version of a dataset. Returns the import's job, which continues at `/imports/ID`. Raises ApiError, Away,
        OSError."""
        return self.send_file("/datasets/import", path, name=name or path.stem, **form)

    def send_file(self, address: str, path: Path, **form: Any) -> dict[str, Any]:
        """Sends a file with the fields of a form; None and "" are not sent. Raises ApiError, Away, OSError."""
        given = {
            key: str(value).lower() if isinstance(value, bool) else value
            for key, value in form.items()
            if value not in (None, "")
        }
        with path.open("rb") as content:
            asked = self.ask("POST", f"/api/v1{address}", data=given, files={"file": (path.name, content)})
        answer: dict[str, Any] = asked.json()
        return answer

    def imported(self, job: dict[str, Any], every_s: float = 2.0) -> dict[str, Any]:
        """Waits until an import is over, and returns its job."""
        while job["state"] in ("queued", "running"):
            self.sleep(every_s)
            job = self.get(f"/imports/{job['id']}")
        return job

    def get(self, path: str, **query: Any) -> Any:
        wanted = {name: value for name, value in query.items() if value is not None}
        return self._read(self.ask("GET", f"/api/v1{path}", params=wanted))

    def post(self, path: str, body: Any = None, key: str | None = None) -> Any:
        return self._read(self.ask("POST", f"/api/v1{path}", key=key, json={} if body is None else body))

    def _read(self, answer: httpx.Response) -> Any:
        """Raises ValueError for a page of another server, which is not JSON."""
        try:
            return answer.json()
        except ValueError:
            raise ValueError(f"{self.address} does not answer with JSON. Is a Touchstone server there?") from None

    def all(self, path: str, **query: Any) -> Iterator[dict[str, Any]]:
        """Every row of a list, page by page."""
        cursor: str | None = None
        while True:
            page = self.get(path, cursor=cursor, **query)
            yield from page["items"]
            if (cursor := page["next"]) is None:
                return

    def launch(self, body: dict[str, Any], key: str | None = None) -> Run:
        """Launches a run once, even if the request has to be tried several times. Raises ApiError with every field that is wrong."""
        run: Run = self.post("/runs", body, key=key or uuid4().hex)
        return run

    def costs(self, by: str = "month", **query: Any) -> Iterator[Cost]:
        """What work has cost, by month, project, run or person. `query`: `month` such as 2026-11, `sort`, `run`."""
        for row in self.all("/costs", by=by, **query):
            yield cast(Cost, row)

    def points(self, run: int, key: str, after_step: int | None = None) -> Iterator[Point]:
        """Every point of a metric, in the order of steps."""
        while True:
            page = self.get(f"/runs/{run}/metrics", key=key, after_step=after_step)
            yield from page["points"]
            if (after_step := page["next"]) is None:
                return

    def log(self, run: int, after_seq: int | None = None) -> Iterator[dict[str, Any]]:
        """The newest lines of a run's log, or every line after one of them."""
        while lines := self.get(f"/runs/{run}/log", after_seq=after_seq)["lines"]:
            yield from lines
            if after_seq is None:
                return
            after_seq = lines[-1]["seq"]


def _pause(failed: int, least_s: float = 0.0) -> float:
    """Seconds until the next try; more after each failed one."""
    waits: float = 0.5 * 2**failed * random.uniform(0.7, 1.3)  # noqa: S311  no secret
    return min(max(least_s, waits), LONGEST_PAUSE_S)


def _seconds(text: str | None) -> float:
    try:
        return float(text or 0)
    except ValueError:
        return 0.0
