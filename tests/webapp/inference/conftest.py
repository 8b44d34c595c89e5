"""A chat server on this machine, to which the operator allows connections, and an endpoint with its address."""

import asyncio
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from ipaddress import ip_network

import pytest

from benchmarks.chatserver import ChatServer
from trainer.judges import client
from webapp.inference.endpoints import services

KEY = "sk-only-for-tests-0123456789"
THIS_MACHINE = (ip_network("127.0.0.0/8"),)


@contextmanager
def serving() -> Iterator[ChatServer]:
    """A server in its own thread, because the code under test has its own event loop."""
    server, started, loop = ChatServer(key=KEY), threading.Event(), asyncio.new_event_loop()
    stop = asyncio.Event()

    async def serve():
        async with server:
            started.set()
            await stop.wait()

    thread = threading.Thread(target=loop.run_until_complete, args=(serve(),))
    thread.start()
    assert started.wait(60)
    yield server
    loop.call_soon_threadsafe(stop.set)
    thread.join(60)
    loop.close()


@pytest.fixture
def chat_server(settings, monkeypatch):
    settings.ENDPOINT_NETWORKS = THIS_MACHINE
    monkeypatch.setattr(client, "FIRST_PAUSE_S", 0.001)
    with serving() as server:
        yield server


@pytest.fixture
def endpoint(team, chat_server):
    return make_endpoint(team, chat_server)


def make_endpoint(team, chat_server: ChatServer):
    return services.create_endpoint(
        team.researcher, "chat", name="judge", url=chat_server.url, model="tiny", secret=KEY, retries=0
    )
