"""Requests with a token. They are tried again while the server is away, and never count twice. Errors have the server's words.

A request that may have arrived is sent again only if it does the same when it arrives twice: it reads, it puts or deletes, it has a key, or
its method says so (`again`). What the server refused because it is busy or away was not carried out, so it is always sent again.
"""

import json
import random
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, BinaryIO

import httpx

from .account import TOKEN, account
from .downloads import Partial, Passed

NAME = "touchstone"
USER_AGENT = f"{NAME}-client/1"
TOKEN_REFUSED = (
    "The server does not accept the token. It is wrong, or it was revoked, or its time is over. "  # noqa: S105  no secret
    f"Make one under Settings → API tokens. Then run `touchstone login`, or set {TOKEN}."
)
UNSURE = "The request may have arrived. Look whether it took effect before you send it again."
BUSY = (429, 503)  # the request was not carried out
LOST = (502, 504)  # of a proxy: perhaps it was
AGAIN = (*BUSY, *LOST)
UNSENT = (httpx.ConnectError, httpx.ConnectTimeout, httpx.PoolTimeout)
REPEATABLE = ("GET", "HEAD", "PUT", "PATCH", "DELETE")
TRIES = 6
LONGEST_PAUSE_S = 30.0
TIMEOUT_S = 60.0


class Away(Exception):
    """The server did not answer any of the tries."""


class ApiError(Exception):
    """The server refused a request: `status`, `code` for programs, and the wrong fields. `id` names the request in the server's log, and
    `asked` is its method and address."""

    def __init__(self, status: int, code: str, message: str, fields: dict[str, str] | None = None) -> None:
        self.status, self.code, self.message, self.fields = status, code, message, fields or {}
        self.id = self.asked = ""
        told = "; ".join(f"{path}: {why}" for path, why in self.fields.items())
        super().__init__(f"{message} {told}".strip() if told else message)


def _error(answer: httpx.Response) -> ApiError:
    error = _refusal(answer)
    error.id = answer.headers.get("X-Request-Id", "")
    error.asked = f"{answer.request.method} {answer.request.url.path}"
    return error


def _refusal(answer: httpx.Response) -> ApiError:
    try:
        body = answer.json()
    except ValueError:
        page = "html" in answer.headers.get("Content-Type", "")
        said = "It answers with a page: is a Touchstone server there?" if page else answer.text[:500]
        return ApiError(answer.status_code, "error", said or answer.reason_phrase)
    if isinstance(body, dict) and "error_code" in body:  # of the MLflow protocol
        return ApiError(answer.status_code, str(body["error_code"]), str(body.get("message", "")))
    error = body.get("error", {}) if isinstance(body, dict) else {}
    if not isinstance(error, dict):  # not the words of our server
        return ApiError(answer.status_code, "error", str(error))
    fields = {each["path"]: each["message"] for each in error.get("fields", [])}
    return ApiError(answer.status_code, error.get("code", "error"), error.get("message", ""), fields)


@dataclass
class Connection:
    """The server at `address`. Without arguments, TOUCHSTONE_URL and TOUCHSTONE_TOKEN give its address and the token; without these, what
    `touchstone login` stored."""

    address: str = ""
    token: str = field(default="", repr=False)
    transport: httpx.BaseTransport | None = None
    tries: int = TRIES
    sleep: Callable[[float], None] = time.sleep
    notice: Callable[[str], None] = lambda problem: None  # called with the reason before a request is tried again

    def __post_init__(self) -> None:
        self.address, self.token = account(self.address, self.token)
        if not (self.token.isascii() and self.token.isprintable()):
            raise ValueError("The token has a character that no token has: copy it once more.")
        self._client = httpx.Client(
            base_url=self.address,
            headers={"User-Agent": USER_AGENT} | ({"Authorization": f"Bearer {self.token}"} if self.token else {}),
            timeout=TIMEOUT_S,
            transport=self.transport,
        )

    def _away(self, error: httpx.TransportError) -> Away:
        if isinstance(error, httpx.UnsupportedProtocol):
            return Away(f"The address {self.address} cannot be used: it must begin with http:// or https://.")
        return Away(f"{self.address} does not answer: {error}")

    def ask(
        self, method: str, path: str, *, key: str | None = None, again: bool = False, **given: Any
    ) -> httpx.Response:
        """The answer. With a `key`, a request that arrives twice counts once: every try sends the same key. `again`: arriving twice does
        the same as arriving once. Raises ApiError, Away."""
        headers = {"Idempotency-Key": key} if key else {}
        repeatable = again or bool(key) or method in REPEATABLE
        return self._tried(lambda: self._client.request(method, path, headers=headers, **given), repeatable)

    def _tried(self, send: Callable[[], httpx.Response], repeatable: bool, tries: int | None = None) -> httpx.Response:
        """The answer of the first try that gets one. Raises ApiError, Away."""
        tries, perhaps, problem = tries or self.tries, False, ""  # perhaps: whether an earlier try may have arrived
        for attempt in range(tries):
            try:
                answer = send()
            except httpx.UnsupportedProtocol as error:
                raise self._away(error) from None
            except httpx.TransportError as error:
                problem, pause, arrived = str(self._away(error)), 0.0, not isinstance(error, UNSENT)
            else:
                gone = answer.request.method == "DELETE" and answer.status_code == 404 and perhaps
                if answer.is_success or gone:
                    return answer
                answer.read()
                if answer.status_code not in AGAIN:
                    raise _error(answer)
                problem = str(_error(answer)) or f"{self.address} answers {answer.status_code}"
                pause, arrived = _seconds(answer.headers.get("Retry-After")), answer.status_code in LOST
            if arrived and not repeatable:
                raise Away(f"{problem}. {UNSURE}")
            perhaps = perhaps or arrived
            if attempt + 1 < tries:
                self.notice(problem)
                self.sleep(pause_s(attempt, pause))
        raise Away(problem)

    @contextmanager
    def _opened(
        self, method: str, path: str, repeatable: bool, tries: int | None = None, **given: Any
    ) -> Iterator[httpx.Response]:
        """The beginning of an answer that is read piece by piece. Raises ApiError, Away, and httpx.TransportError while it is read."""

        def send() -> httpx.Response:
            return self._client.send(self._client.build_request(method, path, **given), stream=True)

        answer = self._tried(send, repeatable, tries)
        try:
            yield answer
        finally:
            answer.close()

    def events(
        self, path: str, body: dict[str, Any] | None = None, silence_s: float | None = None, tries: int | None = None
    ) -> Iterator[tuple[str, dict[str, Any]]]:
        """(name, data) of server-sent events as they come, by POST if there is a `body`. Past events are not repeated. After `silence_s`
        without an event, the server counts as away. Raises ApiError, Away."""
        method, given = ("GET", {}) if body is None else ("POST", {"json": body})
        timeout = httpx.Timeout(TIMEOUT_S, read=silence_s)
        try:
            with self._opened(method, f"/api/v1{path}", body is None, tries, timeout=timeout, **given) as answer:
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

    def save(self, path: str, to: BinaryIO, **query: Any) -> None:
        """Writes the content of an address piece by piece. After a break, it continues where it stopped. Raises ApiError, Away."""
        self._received(path, Passed(to), query)

    def fetch(self, path: str, to: Path, digest: str = "", **query: Any) -> str:
        """Writes the content of an address into a file, as a whole or not at all. After a break, it continues where it stopped, also in a
        later call. Raises ApiError, Away, OSError, and ValueError if the content has another SHA-256 than `digest`: of a file, or of the
        files in a tar. Returns the content type; none for a device or a pipe, to which it writes piece by piece."""
        if to.exists() and not to.is_file():
            with to.open("wb") as out:
                self.save(path, out, **query)
            return ""
        partial = Partial(to)
        try:
            self._received(path, partial, query)
        except BaseException as error:
            partial.left(isinstance(error, ApiError))
            raise
        partial.finished(digest)
        return partial.kind

    def _received(self, path: str, place: Partial | Passed, query: dict[str, Any]) -> None:
        failed, wanted = 0, _given(query)
        while True:
            before = place.size
            try:
                with self._opened("GET", path, True, params=wanted, headers=place.wanted()) as answer:
                    place.take(answer)
                return
            except ApiError as error:
                if error.status != 416 or not place.size:
                    raise
                place.restart()  # all of it is here, or the content is shorter now
            except httpx.TransportError as error:
                failed = 1 if place.size > before else failed + 1
                if failed >= self.tries:
                    raise self._away(error) from error
                self.sleep(pause_s(failed))

    def sent_file(self, path: str, file: Path, *, again: bool = False, **form: Any) -> Any:
        """Sends a file with the fields of a form; None and "" are not sent. Raises ApiError, Away, OSError."""
        said = {
            name: str(value).lower() if isinstance(value, bool) else value
            for name, value in form.items()
            if value not in (None, "")
        }
        with file.open("rb") as content:  # httpx reads it from its beginning for each try
            files = {"file": (file.name, content)}
            return self.read(self.ask("POST", f"/api/v1{path}", again=again, data=said, files=files))

    def get(self, path: str, **query: Any) -> Any:
        return self.read(self.ask("GET", f"/api/v1{path}", params=_given(query)))

    def post(self, path: str, body: Any = None, key: str | None = None, again: bool = False) -> Any:
        return self.read(self.ask("POST", f"/api/v1{path}", key=key, again=again, json={} if body is None else body))

    def read(self, answer: httpx.Response) -> Any:
        """The JSON of an answer. Raises ValueError for a page of another server, which is not JSON."""
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


def _given(values: dict[str, Any]) -> dict[str, Any]:
    """The values without those that are not sent."""
    return {name: value for name, value in values.items() if value is not None}


def pause_s(failed: int, least_s: float = 0.0) -> float:
    """Seconds until the next try; more after each failed one."""
    waits: float = 0.5 * 2**failed * random.uniform(0.7, 1.3)  # noqa: S311  no secret
    return min(max(least_s, waits), LONGEST_PAUSE_S)


def _seconds(text: str | None) -> float:
    try:
        return float(text or 0)
    except ValueError:
        return 0.0
