"""The endpoint that measurements use counts calls and tokens correctly."""

from time import perf_counter

import aiohttp
import pytest

from benchmarks import chatserver
from benchmarks.chatserver import ChatServer


async def post(session, server, text):
    body = {"model": "m", "messages": [{"role": "user", "content": text}]}
    async with session.post(f"{server.url}/chat/completions", json=body) as response:
        return await response.json()


async def test_only_the_shared_beginning_counts_as_cached():
    async with ChatServer() as server, aiohttp.ClientSession() as session:
        await post(session, server, "a" * 640)
        shared = await post(session, server, "a" * 320 + "b" * 320)
        other = await post(session, server, "b" * 640)
    # "<user>" and 320 letters: 5 whole blocks of 64 bytes
    assert shared["usage"]["prompt_tokens_details"]["cached_tokens"] == 80
    assert other["usage"]["prompt_tokens_details"]["cached_tokens"] == 0
    assert server.stats()["cached_tokens"] == 80


def test_requests_in_flight_are_averaged_from_the_first_arrival_to_the_last(monkeypatch):
    server, moments = ChatServer(), iter([10.0, 10.0, 12.0, 13.0, 20.0])
    monkeypatch.setattr(chatserver, "perf_counter", lambda: next(moments))
    for change in (+1, +1, -1, +1, -1):
        server.count(change)
    stats = server.stats()
    assert stats["peak"] == 2 and stats["requests"] == 3
    assert stats["mean_in_flight"] == pytest.approx((2 * 2 + 1 * 1) / 3)  # the seven seconds at the end do not count


async def test_tokens_that_are_not_cached_take_time():
    async with ChatServer(prefill_s=0.001) as server, aiohttp.ClientSession() as session:
        started = perf_counter()
        await post(session, server, "a" * 1000)
        assert perf_counter() - started > 0.25
