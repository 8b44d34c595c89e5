"""Tells open browsers about a change. Losing a message is harmless: pages load their state when they connect."""

import logging

from asgiref.sync import async_to_sync
from channels.layers import get_channel_layer
from django.db import transaction

logger = logging.getLogger(__name__)


def send(group: str, message: dict[str, object]) -> None:
    """Sends `message` to every socket in `group` after the current transaction commits.

    Consumers receive it through their method `broadcast(event)` as `event["message"]`.
    """
    transaction.on_commit(lambda: send_now(group, message))


def send_now(group: str, message: dict[str, object]) -> None:
    """As `send`, whatever becomes of the current transaction: for how far long work has come, never for what it did."""
    layer = get_channel_layer()
    if layer is None:
        return
    try:
        async_to_sync(layer.group_send)(group, {"type": "broadcast", "message": message})
    except Exception:  # the change is committed; a broker that is away must not turn it into an error
        logger.warning("cannot broadcast to %s", group, exc_info=True)
