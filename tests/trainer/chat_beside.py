"""A chat server for a test that blocks its own thread: the server answers in another one."""

import asyncio
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

from benchmarks.chatserver import ChatServer
from tests.timeouts import SECONDS


@contextmanager
def chat_server(**options: Any) -> Iterator[ChatServer]:
    """A test may change the attributes while the server runs."""
    server = ChatServer(**options)
    loop = asyncio.new_event_loop()
    thread = threading.Thread(target=loop.run_forever, daemon=True)
    thread.start()

    def carry_out(work: Any) -> None:
        asyncio.run_coroutine_threadsafe(work, loop).result(SECONDS)

    carry_out(server.__aenter__())
    try:
        yield server
    finally:
        carry_out(server.__aexit__())
        loop.call_soon_threadsafe(loop.stop)
        thread.join(SECONDS)
