"""The endpoint that measurements are taken against counts what it says it counts."""

import asyncio
from time import perf_counter

import aiohttp
import pytest

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


async def test_requests_in_flight_are_averaged_over_time():
    async with ChatServer(latency_s=0.2) as server, aiohttp.ClientSession() as session:
        await asyncio.gather(*(post(session, server, "hello") for _ in range(4)))
        await post(session, server, "hello")
        stats = server.stats()
    assert stats["peak"] == 4 and stats["requests"] == 5
    assert stats["mean_in_flight"] == pytest.approx(4, abs=0.5)


async def test_tokens_that_are_not_cached_take_time():
    async with ChatServer(prefill_s=0.001) as server, aiohttp.ClientSession() as session:
        started = perf_counter()
        await post(session, server, "a" * 1000)
        assert perf_counter() - started > 0.25
