"""A chat server on this machine, to which the operator allows connections, and an endpoint with its address."""

import asyncio
import threading
from ipaddress import ip_network

import pytest

from benchmarks.chatserver import ChatServer
from trainer.judges import client
from webapp.inference.endpoints import services

KEY = "sk-only-for-tests-0123456789"


@pytest.fixture
def chat_server(settings, monkeypatch):
    """A server in its own thread, because the code under test has its own event loop."""
    settings.ENDPOINT_NETWORKS = (ip_network("127.0.0.0/8"),)
    monkeypatch.setattr(client, "FIRST_PAUSE_S", 0.001)
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
def endpoint(team, chat_server):
    return services.create_endpoint(
        team.researcher, "chat", name="judge", url=chat_server.url, model="tiny", secret=KEY, retries=0
    )
