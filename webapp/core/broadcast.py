"""Tells open browsers about a change. Losing a message is harmless: pages load their state when they connect."""

import logging
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from contextvars import ContextVar

from asgiref.sync import async_to_sync
from channels.layers import get_channel_layer
from django.db import transaction
from redis import exceptions

logger = logging.getLogger(__name__)
Message = tuple[str, dict[str, object]]  # its group and what it says
AWAY = (OSError, exceptions.ConnectionError, exceptions.TimeoutError)
MOST_AWAY = 2  # a connection that broke is made again by the next message
_gathered: ContextVar[list[Message] | None] = ContextVar("gathered", default=None)


def send(group: str, message: dict[str, object]) -> None:
    """Sends `message` to every socket in `group` after the current transaction commits.

    Consumers receive it through their method `broadcast(event)` as `event["message"]`.
    """
    gathered = _gathered.get()
    if gathered is None:
        transaction.on_commit(lambda: send_now(group, message))
    else:
        gathered.append((group, message))


@contextmanager
def together() -> Iterator[None]:
    """Sends the messages of this block one after the other over one connection. A connection for each costs more than the message."""
    if _gathered.get() is not None:
        yield
        return
    messages: list[Message] = []
    token = _gathered.set(messages)
    try:
        yield
    finally:
        _gathered.reset(token)
    if messages:
        transaction.on_commit(lambda: _deliver(messages))


def send_now(group: str, message: dict[str, object]) -> None:
    """Sends like `send`, but at once and even if the transaction is rolled back: for the progress of long work, never for its result."""
    _deliver([(group, message)])


def _deliver(messages: Sequence[Message]) -> None:
    layer = get_channel_layer()
    if layer is None:
        return

    async def send_all() -> None:
        away = 0
        for sent, (group, message) in enumerate(messages):
            if away == MOST_AWAY:  # each of the rest would wait as long for nothing
                logger.warning("the broker is away: %s more broadcasts are not sent", len(messages) - sent)
                return
            try:
                await layer.group_send(group, {"type": "broadcast", "message": message})
            except Exception as error:  # a message that fails takes no other with it
                logger.warning("cannot broadcast to %s", group, exc_info=True)
                away += isinstance(error, AWAY)

    try:
        async_to_sync(send_all)()
    except Exception:  # the change is committed; nothing here must turn it into an error
        logger.warning("cannot broadcast", exc_info=True)
