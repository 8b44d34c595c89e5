"""Unwanted bodies of requests are refused before they are stored, by size, by speed and by the free space."""

import asyncio
import json
import shutil
from collections import namedtuple
from typing import Any

import pytest
from asgiref.sync import async_to_sync
from django.db import connection

from tests.team import ApiClient, browser
from webapp.accounts.authentication.headers import has_account
from webapp.core.requests import bodies, keep_alive
from webapp.core.requests.handler import ThreadedHandler

GB = 10**9


def scope(length: int | None = None, **headers: str) -> dict:
    listed = [(name.encode(), value.encode()) for name, value in headers.items()]
    if length is not None:
        listed.append((b"content-length", str(length).encode()))
    return {"type": "http", "method": "POST", "path": "/api/v1/datasets/import", "headers": listed}


class Sender:
    """Sends `pieces`, then nothing for ever. Counts the accepted pieces."""

    def __init__(self, *pieces: bytes, end: bool = True) -> None:
        self.pieces, self.end, self.taken = list(pieces), end, 0

    async def __call__(self) -> dict:
        if not self.pieces:
            await asyncio.sleep(3600)
        self.taken += 1
        piece = self.pieces.pop(0)
        return {"type": "http.request", "body": piece, "more_body": bool(self.pieces) or not self.end}


async def anybody(scope) -> bool:
    return True


async def nobody(scope) -> bool:
    return False


async def refused(scope, sender, known=nobody) -> int:
    with pytest.raises(bodies.BodyRefused) as problem:
        await bodies.read(scope, sender, known)
    return problem.value.status


async def test_a_strangers_large_body_is_refused_before_a_byte_is_read():
    sender = Sender(b"x")
    assert await refused(scope(bodies.SMALL + 1), sender) == 413
    assert sender.taken == 0


async def test_a_body_without_a_length_is_counted():
    megabyte = b"x" * 10**6
    sender = Sender(*[megabyte] * 50)
    assert await refused(scope(), sender) == 413
    assert sender.taken == bodies.SMALL // 10**6 + 1


async def test_who_is_known_sends_files_of_any_size_up_to_the_limit():
    read = await bodies.read(scope(8 * 10**6), Sender(*[b"y" * 10**6] * 8), anybody)
    assert len(read.read()) == 8 * 10**6
    assert await refused(scope(bodies.LARGEST + 1), Sender(), anybody) == 413


async def test_a_small_body_asks_nobody_who_it_is_from():
    async def asked(scope):
        raise AssertionError("asked")

    assert (await bodies.read(scope(2), Sender(b"{}"), asked)).read() == b"{}"


async def test_silence_ends(monkeypatch):
    monkeypatch.setattr(bodies, "SILENCE_S", 0.05)
    assert await refused(scope(), Sender(b"x", end=False)) == 408


async def test_a_trickle_ends(monkeypatch):
    monkeypatch.setattr(bodies, "SILENCE_S", 0.02)

    class Trickle(Sender):
        async def __call__(self):
            await asyncio.sleep(0.01)
            return {"type": "http.request", "body": b"", "more_body": True}

    assert await refused(scope(), Trickle()) == 408


async def test_a_full_disk_is_not_filled_further(monkeypatch):
    usage = namedtuple("usage", "free")
    monkeypatch.setattr(shutil, "disk_usage", lambda path: usage(2 * GB))
    assert await refused(scope(int(1.5 * GB)), Sender(), anybody) == 507


async def test_the_refusal_is_told_and_ends_the_connection():
    sent = []

    async def send(message):
        sent.append(message)

    await ThreadedHandler(1, nobody).handle(scope(GB), Sender(), send)
    assert sent[0]["status"] == 413
    assert (b"Connection", b"close") in sent[0]["headers"]
    error = json.loads(sent[1]["body"])["error"]
    assert (error["code"], error["fields"]) == ("body_refused", [])
    assert error["id"] and (b"X-Request-Id", error["id"].encode()) in sent[0]["headers"]


@pytest.mark.django_db(transaction=True)
def test_known_is_who_has_a_live_token_or_session(team):
    look = async_to_sync(has_account)
    token = ApiClient(team.annotator).client.defaults["HTTP_AUTHORIZATION"]
    session = browser(team.annotator).cookies["sessionid"].value
    assert look(scope(authorization=token))
    assert look(scope(cookie=f"a=b; sessionid={session}"))
    strangers: list[dict[str, Any]]
    strangers = [{}, {"cookie": "sessionid=guessed"}, {"authorization": "Bearer ts_guessed"}, {"cookie": "[=;"}]
    for stranger in strangers:
        assert not look(scope(**stranger))
    team.annotator.user.is_active = False
    team.annotator.user.save()
    assert not look(scope(authorization=token)) and not look(scope(cookie=f"sessionid={session}"))


@pytest.mark.django_db(transaction=True)
def test_who_is_known_is_looked_up_without_keeping_a_connection(team):
    """The web server has sixteen threads. Each large upload would have blocked one of them for good."""
    headers = scope(authorization=ApiClient(team.annotator).client.defaults["HTTP_AUTHORIZATION"])
    connection.ensure_connection()
    assert async_to_sync(has_account)(headers)
    assert connection.connection is None


class Connection:
    """The parts of a transport that the protocol needs."""

    def __init__(self) -> None:
        self.aborted, self.written = False, b""

    def write(self, data: bytes) -> None:
        self.written += data

    def close(self) -> None:
        self.aborted = True

    def abort(self) -> None:
        self.aborted = True

    def get_extra_info(self, name):
        return None

    def is_closing(self) -> bool:
        return self.aborted


async def protocol() -> tuple[keep_alive.KeepAliveProtocol, Connection]:
    from uvicorn.config import Config
    from uvicorn.server import ServerState

    async def app(scope, receive, send):
        await asyncio.sleep(3600)

    made = keep_alive.KeepAliveProtocol(config=Config(app, log_config=None), server_state=ServerState(), app_state={})
    connection = Connection()
    made.connection_made(connection)  # type: ignore[arg-type]
    return made, connection


async def test_a_connection_that_sends_no_request_ends(monkeypatch):
    monkeypatch.setattr(keep_alive, "HEADERS_S", 0.05)
    _, silent = await protocol()
    slow, dripping = await protocol()
    slow.data_received(b"GET / HTTP/1.1\r\nHost: localhost\r\n")
    served, fine = await protocol()
    served.data_received(b"GET / HTTP/1.1\r\nHost: localhost\r\n\r\n")
    await asyncio.sleep(0.15)
    assert (silent.aborted, dripping.aborted, fine.aborted) == (True, True, False)
    for task in list(served.tasks):
        task.cancel()


async def test_headers_without_end_are_not_collected():
    made, connection = await protocol()
    made.data_received(b"GET / HTTP/1.1\r\n" + b"X-A: " + b"a" * keep_alive.HEADERS_BYTES + b"\r\n")
    assert connection.aborted


@pytest.mark.parametrize(
    "headers",
    [
        b"Content-Length: 5\r\nContent-Length: 6",
        b"Content-Length: 5\r\nTransfer-Encoding: chunked",
        b"Transfer-Encoding: chunked\r\nContent-Length: 5",
        b"Transfer-Encoding: chunked, identity",
        b"Transfer-Encoding: xchunked",
        b"Content-Length: +5",
        b"Content-Length : 5",
        b"X-A: a\nTransfer-Encoding: chunked",
    ],
)
async def test_a_request_that_says_two_lengths_is_refused_and_what_follows_it_is_not_read(headers):
    made, connection = await protocol()
    made.data_received(b"POST / HTTP/1.1\r\nHost: localhost\r\n" + headers + b"\r\n\r\n0\r\n\r\n")
    assert connection.written.startswith(b"HTTP/1.1 400") and connection.aborted
    made.data_received(b"GET /smuggled HTTP/1.1\r\nHost: localhost\r\n\r\n")
    assert all(cycle.scope["path"] != "/smuggled" for cycle in [made.cycle] if cycle)
    for task in list(made.tasks):
        task.cancel()
