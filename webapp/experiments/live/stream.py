"""A run's events as server-sent events: the messages of its websocket, over plain HTTP, for programs."""

import asyncio
import contextlib
import json
from collections.abc import AsyncIterator, Callable
from time import monotonic
from typing import Any

from channels.db import database_sync_to_async
from channels.layers import get_channel_layer
from django.http import StreamingHttpResponse

from webapp.core.health import DATABASE_AWAY

from .. import serializers
from ..models import OVER, Run
from . import broadcasts
from .waiting import OutgoingQueue

STILL_HERE_S = 15.0  # proxies end connections that say nothing for long
RECHECK_S = 60.0  # how soon a program whose token was revoked stops hearing
LONGEST_S = 3600.0


def response(run_id: int, may_listen: Callable[[], bool]) -> StreamingHttpResponse:
    """The stream begins with the run as it is, and ends when the run is over, when `may_listen` says no, or after an hour."""
    told = StreamingHttpResponse(_told(run_id, may_listen), content_type="text/event-stream; charset=utf-8")
    told["Cache-Control"] = "no-store"
    told["X-Accel-Buffering"] = "no"  # a proxy in front would collect the events
    return told


async def _told(run_id: int, may_listen: Callable[[], bool]) -> AsyncIterator[bytes]:
    layer: Any = get_channel_layer()
    group, channel, waiting = broadcasts.run_group(run_id), await layer.new_channel(), OutgoingQueue()
    await layer.group_add(group, channel)  # first: nothing falls between the run as it is and what comes after
    hearing = asyncio.create_task(_hear(layer, channel, waiting))
    try:
        async for text in _texts(run_id, may_listen, waiting, hearing):
            yield text
    finally:
        hearing.cancel()
        with contextlib.suppress(asyncio.CancelledError, Exception):
            await hearing
        await layer.group_discard(group, channel)


async def _hear(layer: Any, channel: str, waiting: OutgoingQueue) -> None:
    while True:
        waiting.add((await layer.receive(channel))["message"])


async def _texts(
    run_id: int, may_listen: Callable[[], bool], waiting: OutgoingQueue, hearing: asyncio.Task[None]
) -> AsyncIterator[bytes]:
    began = checked = monotonic()
    try:
        text = await database_sync_to_async(_now)(run_id)
        while text is None or not _ends(told := json.loads(text)):
            yield b": still here\n\n" if text is None else _event(told["type"], text)
            if monotonic() - checked >= RECHECK_S:
                if not await database_sync_to_async(may_listen)():
                    return
                checked = monotonic()
            if hearing.done() or monotonic() - began >= LONGEST_S:
                return
            text = await waiting.next(min(STILL_HERE_S, RECHECK_S))
        yield _event(told["type"], text)
    except DATABASE_AWAY:
        return  # the listener asks again, and then gets the reason


def _now(run_id: int) -> str:
    run = Run.objects.with_names().filter(id=run_id).first()
    return json.dumps({"type": "now", **serializers.run(run, config=False)} if run else {"type": "gone"})


def _ends(told: dict[str, Any]) -> bool:
    return told["type"] == "gone" or (told["type"] in ("now", "run") and told["state"] in OVER)


def _event(name: str, text: str) -> bytes:
    return f"event: {name}\ndata: {text}\n\n".encode()
