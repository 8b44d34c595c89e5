"""The connection of a job to the server: it fetches items, and sends results in numbered batches and signs of life."""

import json
import shutil
import threading
import time
from collections.abc import Iterable, Iterator, Mapping, Sequence
from types import TracebackType
from typing import Any, Literal, Self

import httpx
from pydantic import ValidationError

from trainer.contracts.weights import (
    MAX_ITEMS_PER_POST,
    WeightsAssignment,
    WeightsBatch,
    WeightsLine,
    WeightsReply,
    WeightsSteps,
)
from trainer.storing import ObjectStore, scratch

from .resources import process_usage

_HEARTBEAT_S = 2.0
_TIMEOUT = httpx.Timeout(30.0, connect=5.0)
_LONGEST_PAUSE_S = 15.0
PATIENCE_S = 1800.0
"""Seconds to wait for a server that does not answer: longer than a restart, or a repair of its database."""
_GONE = {401, 403, 404, 410}


class JobStopped(Exception):
    """Somebody asked the job to end, or a limit of the job itself ended it; the message says which, if there is one."""


class Abandoned(Exception):
    """Another attempt has taken the job, or the job is over: nothing more may be written."""


class ServerAway(RuntimeError):
    """The server did not answer for a very long time."""


class JobClient:
    """`with JobClient(url, token) as client`: fetches the assignment, and sends signs of life in its own thread until the end."""

    def __init__(self, url: str, token: str) -> None:
        self._url, self._token = url, token
        self._http = self._client()
        self._lock = threading.Lock()
        self._ended = threading.Event()
        self._command: Literal["continue", "stop", "abandon"] = "continue"
        self.phase = ""
        self.steps: WeightsSteps | None = None
        self.assignment = WeightsAssignment.model_validate_json(self._get(url))
        self._number, self._lines = self.assignment.acked, list[WeightsLine]()
        self.objects: ObjectStore | None = None

    def _client(self) -> httpx.Client:
        # proxies from the environment must not stand between a job and its own server
        return httpx.Client(headers={"Authorization": f"Bearer {self._token}"}, timeout=_TIMEOUT, trust_env=False)

    def __enter__(self) -> Self:
        threading.Thread(target=self._beat, daemon=True).start()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._ended.set()
        self._http.close()

    def settle(self) -> None:
        """Fetch what lies in the artifact store, if this node shares no disk with the server: from here on the assignment
        names folders of this node. Raises StoreAway, StoreRefused and OSError.
        """
        told = self.assignment
        if not told.store_url:
            return
        here = scratch(told.store_url)
        self.objects = ObjectStore(told.store_url, self._token, here)
        models = {role: self.objects.source(source) for role, source in told.models.items()}
        folder = here / "weights" / f"{told.job_id}-{told.attempt}"
        folder.mkdir(parents=True, exist_ok=True, mode=0o700)
        self.assignment = told.model_copy(update={"models": models, "folder": str(folder)})

    def clear(self) -> None:
        """Remove what `settle` has made for this job alone; models stay for later jobs."""
        if self.objects:
            self.objects.close()
            shutil.rmtree(self.assignment.folder, ignore_errors=True)

    def items(self) -> Iterator[dict[str, Any]]:
        """The items that have no result yet. If a connection breaks, a new one begins after the last item that came."""
        after = self.assignment.done
        deadline = time.monotonic() + PATIENCE_S
        while True:
            try:
                with self._http.stream("GET", self.assignment.items_url, params={"after": after}) as response:
                    if response.status_code in _GONE:
                        raise Abandoned
                    response.raise_for_status()
                    for line in _lines(response.iter_bytes()):
                        after, deadline = after + 1, time.monotonic() + PATIENCE_S
                        yield json.loads(line)
                return
            except httpx.HTTPError as error:
                if time.monotonic() > deadline:
                    raise ServerAway(f"the items could not be fetched: {error}") from error
                time.sleep(1.0)

    def log(self, message: str, level: Literal["info", "warning", "error"] = "info") -> None:
        """Add a line to the log; the next post sends it."""
        print(f"{level}: {message}" if level != "info" else message, flush=True)
        with self._lock:
            self._lines.append(WeightsLine(level=level, message=message[:20_000]))

    def check(self) -> None:
        """Raises JobStopped or Abandoned if the server asked for it."""
        if self._command == "abandon":
            raise Abandoned
        if self._command == "stop":
            raise JobStopped

    def store(self, results: Sequence[Mapping[str, Any]]) -> None:
        """Send results; returns once the server has them. Raises JobStopped or Abandoned afterwards, and ServerAway."""
        for at in range(0, len(results), MAX_ITEMS_PER_POST):
            self._number += 1
            part = tuple(dict(result) for result in results[at : at + MAX_ITEMS_PER_POST])
            self._post(
                WeightsBatch(attempt=self.assignment.attempt, number=self._number, results=part, phase=self.phase)
            )
        self.check()

    def end(
        self,
        state: Literal["finished", "failed", "stopped"],
        reason: str = "",
        outcome: Mapping[str, Any] | None = None,
    ) -> None:
        """Send the end of the job; nothing is sent after it."""
        attempt = self.assignment.attempt
        said = dict(outcome or {})
        self._post(WeightsBatch(attempt=attempt, state=state, reason=reason[:5000], outcome=said, used=process_usage()))

    def _post(self, batch: WeightsBatch) -> None:
        """Send a batch until it is stored. Raises Abandoned and ServerAway."""
        with self._lock:
            batch = batch.model_copy(update={"lines": tuple(self._lines[:100])})
            del self._lines[:100]
        body, pause, deadline = batch.model_dump_json(), 0.25, time.monotonic() + PATIENCE_S
        while True:
            trouble = self._sent(body)
            if not trouble:
                return
            if self._command == "abandon":
                raise Abandoned
            if time.monotonic() > deadline:
                raise ServerAway(trouble)
            time.sleep(pause)
            pause = min(2 * pause, _LONGEST_PAUSE_S)

    def _sent(self, body: str, http: httpx.Client | None = None) -> str:
        """The reason why the server did not take the batch; empty if it took it."""
        try:
            answer = (http or self._http).post(
                f"{self._url}/batches", content=body.encode(), headers={"Content-Type": "application/json"}
            )
        except httpx.HTTPError as error:
            return f"{type(error).__name__}: {error}"
        if answer.status_code in _GONE:
            self._command = "abandon"
            return f"the server refused this attempt (HTTP {answer.status_code})"
        if answer.status_code != 200:
            return f"HTTP {answer.status_code}: {answer.text[:300]}"
        try:
            reply = WeightsReply.model_validate_json(answer.content)
        except ValidationError as error:
            return f"the reply cannot be read: {error}"
        if self._command != "abandon":
            self._command = reply.command
        return ""

    def _beat(self) -> None:
        """Say that the process lives while it loads and computes, and learn whether it must stop."""
        with self._client() as http:
            while not self._ended.wait(_HEARTBEAT_S):
                beat = WeightsBatch(
                    attempt=self.assignment.attempt, phase=self.phase, used=process_usage(), steps=self.steps
                )
                self._sent(beat.model_dump_json(), http)

    def _get(self, url: str) -> bytes:
        deadline = time.monotonic() + 120.0
        while True:
            try:
                answer = self._http.get(url)
                if answer.status_code == 200:
                    return answer.content
                trouble = f"HTTP {answer.status_code}: {answer.text[:300]}"
                if answer.status_code in _GONE:
                    raise Abandoned(trouble)
            except httpx.HTTPError as error:
                trouble = f"{type(error).__name__}: {error}"
            if time.monotonic() > deadline:
                raise ServerAway(f"{url} did not answer: {trouble}")
            time.sleep(1.0)


def _lines(pieces: Iterable[bytes]) -> Iterator[bytes]:
    """The lines, ended only by a line feed: texts may contain other characters that Unicode counts as line ends."""
    rest = b""
    for piece in pieces:
        *whole, rest = (rest + piece).split(b"\n")
        yield from whole
