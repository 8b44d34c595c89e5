"""Sends spooled events to the server until it has acknowledged every one."""

import json
import os
import random
import re
import threading
import time
from collections import deque
from pathlib import Path
from typing import Literal

import httpx
from pydantic import ValidationError

from trainer.contracts import MAX_EVENTS_PER_POST, MAX_POST_BYTES, IngestReply

from .spool import Spool

Command = Literal["continue", "stop", "abandon"]

_HEARTBEAT_S = 2.0
_LINGER_S = 0.2
_BACKOFF_MAX_S = 15.0
_TIMEOUT = httpx.Timeout(20.0, connect=5.0)
DELIVERY_S = 1800.0
"""The time for which a run that has ended waits for a server that does not answer: longer than a restart or a repair of the database."""
_GONE = {401, 403, 404, 410}


class HttpSink:
    """A thread that posts batches in order and sends each again until the reply acknowledges it.

    The server keeps one copy of every number, so a lost reply costs one repetition. If there is nothing to send, the thread still
    posts at least every two seconds. Each reply says what the server wants: `command` is `stop` (finish cleanly) or `abandon` (the
    token is no longer valid: another attempt owns the run).
    """

    def __init__(self, spool: Spool, url: str, token: str, attempt: int, acked: int = 0) -> None:
        self._spool, self._url, self._attempt, self._begins = spool, url, attempt, spool.last_seq + 1
        self._acked_file = spool.path.with_name("acked")
        self._reader = _EventReader(spool, max(acked, _read_acked(self._acked_file)))
        # Proxies from the environment must not stand between a run and its own server.
        self._client = httpx.Client(
            headers={"Authorization": f"Bearer {token}"}, timeout=_TIMEOUT, trust_env=False, follow_redirects=False
        )
        self._wake, self._closing = threading.Event(), threading.Event()
        self._failures = 0
        self.command: Command = "continue"
        self.trouble = ""
        self._thread = threading.Thread(target=self._run, name="event-sink", daemon=True)

    @property
    def acked(self) -> int:
        return self._reader.acked

    def start(self) -> None:
        self._thread.start()

    def notify(self) -> None:
        """Say that the spool has new events."""
        self._wake.set()

    def close(self, timeout_s: float = DELIVERY_S) -> bool:
        """Wait until everything is acknowledged, at most `timeout_s`. True if everything was."""
        deadline = time.monotonic() + timeout_s
        while self.acked < self._spool.last_seq and self.command != "abandon" and time.monotonic() < deadline:
            self._wake.set()
            time.sleep(0.02)
        self._closing.set()
        self._wake.set()
        self._thread.join(timeout=5.0)
        self._client.close()
        return self.acked >= self._spool.last_seq

    def _run(self) -> None:
        while not self._closing.is_set() and self.command != "abandon":
            lines = self._reader.batch()
            sent = self._post(lines)
            if not sent:
                self._closing.wait(self._backoff_s())
            elif not self._reader.more():
                self._wake.wait(_HEARTBEAT_S)
                self._wake.clear()
                # Events come in bursts; a short wait turns a burst into one request.
                self._closing.wait(_LINGER_S)

    def _post(self, lines: list[str]) -> bool:
        body = f'{{"attempt":{self._attempt},"begins":{self._begins},"events":[{",".join(lines)}]}}'
        try:
            response = self._client.post(self._url, content=body.encode(), headers={"Content-Type": "application/json"})
        except httpx.HTTPError as error:
            return self._failed(f"{type(error).__name__}: {error}")
        if response.status_code in _GONE:
            self.command = "abandon"
            self.trouble = f"the server refused this attempt's token (HTTP {response.status_code})"
            return False
        if response.status_code == 413:
            self._reader.halve()
        if response.status_code != 200:
            return self._failed(f"HTTP {response.status_code}: {response.text[:300]}")
        return self._understood(response.content)

    def _understood(self, content: bytes) -> bool:
        try:
            reply = IngestReply.model_validate_json(content)
        except ValidationError as error:
            return self._failed(f"the reply is not an IngestReply: {error}")
        self._reader.acknowledge(reply.acked)
        _write_acked(self._acked_file, self._reader.acked)
        if reply.command != "continue":
            self.command = reply.command
        self._failures, self.trouble = 0, ""
        return True

    def _failed(self, trouble: str) -> bool:
        self._failures += 1
        self.trouble = trouble
        return False

    def _backoff_s(self) -> float:
        longest = min(_BACKOFF_MAX_S, 0.25 * 2.0 ** min(self._failures, 10))
        return longest * random.uniform(0.5, 1.0)  # noqa: S311 - spreads retries, protects nothing


class _EventReader:
    """Reads the lines behind the acknowledged number, from the file and then from the spool's memory."""

    def __init__(self, spool: Spool, acked: int) -> None:
        self._spool, self.acked = spool, acked
        self._pending: deque[tuple[int, str]] = deque()
        self._offset, self._loaded = 0, acked
        self._limit = MAX_EVENTS_PER_POST

    def batch(self) -> list[str]:
        """The oldest unacknowledged lines that fit into one post."""
        self._load()
        lines: list[str] = []
        size = 0
        for _, line in self._pending:
            size += len(line.encode()) + 1
            if lines and (len(lines) >= self._limit or size > MAX_POST_BYTES - 1000):
                break
            lines.append(line)
        return lines

    def more(self) -> bool:
        return self._spool.last_seq > self.acked

    def halve(self) -> None:
        """Send fewer events at a time: a proxy in between may allow less than the server."""
        self._limit = max(1, self._limit // 2)

    def acknowledge(self, acked: int) -> None:
        if acked < self.acked:
            # The server knows less than it once acknowledged (a restored database): send again from there.
            self._pending.clear()
            self._offset, self._loaded = 0, acked
        while self._pending and self._pending[0][0] <= acked:
            self._pending.popleft()
        self.acked = acked

    def _load(self) -> None:
        if len(self._pending) >= self._limit:
            return
        with self._spool.path.open("rb") as file:
            file.seek(self._offset)
            while len(self._pending) < self._limit:
                written = file.readline()
                if not written.endswith(b"\n"):
                    break
                self._offset += len(written)
                self._take(written.decode().rstrip("\n"))
            else:
                return
        # Between the read above and this one the spool may have moved lines from memory to disk. Lines that do not
        # follow on directly are left for the next round, which finds them in the file.
        for line in self._spool.tail():
            if _number(line) <= self._loaded + 1:
                self._take(line)

    def _take(self, line: str) -> None:
        seq = _number(line)
        if seq > self._loaded:
            self._pending.append((seq, line))
            self._loaded = seq


_SEQ = re.compile(r'\{"seq":(\d+)')


def _number(line: str) -> int:
    """The number of an event, read from the start of a line that our own writer wrote: parsing the spool of a long run would delay
    its first heartbeats.
    """
    found = _SEQ.match(line)
    return int(found[1]) if found else int(json.loads(line)["seq"])


def _read_acked(path: Path) -> int:
    try:
        return int(path.read_text())
    except (FileNotFoundError, ValueError):
        return 0


def _write_acked(path: Path, acked: int) -> None:
    """Save the acknowledged number. It only saves resending after a restart, so a full disk must not stop the run."""
    try:
        temporary = path.with_suffix(".new")
        temporary.write_text(str(acked))
        os.replace(temporary, path)
    except OSError:
        return
