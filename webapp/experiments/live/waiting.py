"""Messages that wait for one listener, so that a slow one delays nobody else."""

import asyncio
import contextlib
import json
from collections import deque
from typing import Any

MOST_WAITING = 500  # messages kept for a listener that reads slowly
RESYNC = json.dumps({"type": "resync"})


class OutgoingQueue:
    """A queue of JSON texts. When it overflows, everything in it is dropped for one `{"type": "resync"}`: the listener then loads the state
    again instead of drawing a curve with holes."""

    def __init__(self) -> None:
        self._texts: deque[str] = deque()
        self._news = asyncio.Event()

    def add(self, message: dict[str, Any]) -> None:
        """A message of the channel layer; a batch is its items."""
        for item in message["items"] if message["type"] == "batch" else [message]:
            self._texts.append(json.dumps(item))
        if len(self._texts) > MOST_WAITING:
            self._texts.clear()
            self._texts.append(RESYNC)
        self._news.set()

    async def next(self, within_s: float) -> str | None:
        """The oldest message; None if there was none for `within_s` seconds."""
        if not self._texts:
            self._news.clear()
            with contextlib.suppress(TimeoutError):
                await asyncio.wait_for(self._news.wait(), within_s)
        return self._texts.popleft() if self._texts else None
