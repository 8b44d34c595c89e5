"""Reads the bodies of requests, with limits on their size and their time that depend on the sender.

The event loop writes a body to a file before any view runs, so these decisions are made here. Strangers can send as much as a form or a
JSON body takes; only people and scripts that the application knows can send files.
"""

import asyncio
import shutil
import tempfile
from collections.abc import Awaitable, Callable, Mapping
from typing import IO, Any

from django.conf import settings
from django.core.exceptions import RequestAborted

Scope = Mapping[str, Any]
Receive = Callable[[], Awaitable[Mapping[str, Any]]]
Known = Callable[[Scope], Awaitable[bool]]  # whether the request's session or token is somebody's

SMALL = settings.DATA_UPLOAD_MAX_MEMORY_SIZE + 500_000  # bytes: what views read into memory, and a form's wrapping
LARGEST = 4_100_000_000  # bytes: an import's greatest file, and the form around it
SILENCE_S = 30.0  # between two pieces
PACE = (
    2_000  # bytes a second at least, on average after the first silence: 4 GB in one evening are not worth a connection
)
ROOM = 1_000_000_000  # bytes that stay free where bodies are written


class BodyRefused(Exception):
    """The body is not read to its end; `status` and the message say why."""

    def __init__(self, status: int, message: str) -> None:
        self.status = status
        super().__init__(message)


async def read(scope: Scope, receive: Receive, known: Known) -> IO[bytes]:
    """The body, in memory or in a file that goes when it is closed. Raises BodyRefused, and RequestAborted if the sender left."""
    body: IO[bytes] = tempfile.SpooledTemporaryFile(max_size=settings.FILE_UPLOAD_MAX_MEMORY_SIZE, mode="w+b")  # noqa: SIM115 - its reader closes it
    try:
        await _fill(body, _Gate(scope, known), receive)
    except BaseException:
        body.close()
        raise
    body.seek(0)
    return body


async def _fill(body: IO[bytes], gate: "_Gate", receive: Receive) -> None:
    await gate.announced()
    began = asyncio.get_running_loop().time()
    while True:
        try:
            message = await asyncio.wait_for(receive(), SILENCE_S)
        except TimeoutError:
            raise BodyRefused(408, f"The server received nothing for {SILENCE_S:.0f} seconds.") from None
        if message["type"] == "http.disconnect":
            raise RequestAborted
        if piece := message.get("body"):
            await gate.grown(len(piece))
            body.write(piece)
        if not message.get("more_body", False):
            return
        late = asyncio.get_running_loop().time() - began - SILENCE_S
        if late > 0 and gate.size < late * PACE:
            raise BodyRefused(408, f"The request arrives at less than {PACE:,} bytes a second.")


class _Gate:
    """Counts a body, and lets large ones pass only for people who are known."""

    def __init__(self, scope: Scope, known: Known) -> None:
        self.scope, self.known = scope, known
        self.size = 0
        self.limit = SMALL

    async def announced(self) -> None:
        """Refuses a body by its Content-Length, before a byte is read."""
        length = dict(self.scope["headers"]).get(b"content-length", b"")
        if length.isdigit():
            await self._admit(int(length))

    async def grown(self, by: int) -> None:
        self.size += by
        await self._admit(self.size)

    async def _admit(self, size: int) -> None:
        if size <= self.limit:
            return
        if size > LARGEST:
            raise BodyRefused(413, f"A request can have at most {LARGEST // 10**9} GB.")
        if self.limit == SMALL and not await self.known(self.scope):
            raise BodyRefused(413, f"A request can have at most {SMALL // 10**6} MB. Sign in to send files.")
        if shutil.disk_usage(tempfile.gettempdir()).free - (size - self.size) < ROOM:
            raise BodyRefused(507, "The server has no space for this file. Ask the person who runs it to free some.")
        self.limit = max(
            size, min(LARGEST, 2 * self.limit)
        )  # asked again after each doubling: the disk may fill meanwhile
