"""Every method of the client, and every command, on a line that is bad: it succeeds, and what it asks for happens once."""

import inspect
from collections.abc import Iterator
from functools import cache
from pathlib import Path

import httpx
import pytest
from touchstone.http import Away
from touchstone.server import Server

from scripts import client

from .test_http import server

NEVER_SENT = httpx.ConnectTimeout("timed out")
LOST = httpx.ReadTimeout("timed out")
ANSWER = {"id": 1, "items": [], "next": None, "lines": [], "points": []}
EVENTS = b"event: done\ndata: {}\n\n"


@cache
def operations() -> list[client.ClientOperation]:
    return [each for group in client.ClientDocument(client.document()).groups.values() for each in group]


def good(operation: client.ClientOperation) -> httpx.Response:
    return (
        httpx.Response(200, content=EVENTS)
        if "event-stream" in operation.answer[0]
        else httpx.Response(200, json=ANSWER)
    )


def called(known: Server, operation: client.ClientOperation, place: Path) -> None:
    """Calls the method of an operation with arguments of the right kind, to the end of its answer."""
    method = getattr(getattr(known, operation.group), operation.name)
    given = {
        name: {"int": 1, "Path": place / "file", "str": "a", "Literal": "a"}.get(
            parameter.annotation.partition("[")[0], {}
        )
        for name, parameter in inspect.signature(method).parameters.items()
        if parameter.default is inspect.Parameter.empty
    }
    found = method(**given)
    if isinstance(found, Iterator):
        list(found)


def repeatable(operation: client.ClientOperation) -> bool:
    """Whether it does the same if it arrives twice. A PATCH sets fields."""
    keyed = bool(operation.parameters("header"))
    return operation.method != "POST" or keyed or bool(client.SETS.search(operation.path))


@pytest.fixture
def place(tmp_path):
    (tmp_path / "file").write_text("{}")
    return tmp_path


def test_each_method_tries_again_what_was_not_carried_out(place):
    for operation in operations():
        busy = httpx.Response(503, json={}), httpx.Response(429, headers={"Retry-After": "7"}, json={})
        known, script, pauses = server(*busy, NEVER_SENT, good(operation))
        called(known, operation, place)
        assert len(script.asked) == 4 and pauses[1] >= 7, operation.path
        assert len({request.headers.get("Idempotency-Key") for request in script.asked}) == 1


def test_each_method_sends_again_only_what_counts_once(place):
    again = 0
    for operation in operations():
        known, script, _ = server(LOST, good(operation))
        if repeatable(operation):
            called(known, operation, place)
            assert len(script.asked) == 2, operation.path
            again += 1
        else:
            with pytest.raises(Away, match="may have arrived"):
                called(known, operation, place)
            assert len(script.asked) == 1, operation.path
    assert again > 200


def test_each_operation_that_takes_a_key_gets_one(place):
    keyed = [each for each in operations() if each.parameters("header")]
    for operation in keyed:
        known, script, _ = server(good(operation), good(operation))
        called(known, operation, place)
        called(known, operation, place)
        assert len({request.headers["Idempotency-Key"] for request in script.asked}) == 2, operation.path
    assert len(keyed) >= 9


def test_a_deletion_whose_answer_was_lost_is_one():
    known, script, _ = server(LOST, httpx.Response(404, json={}))
    known.runs.delete(7)
    assert len(script.asked) == 2
