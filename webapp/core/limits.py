"""A rate limit over a sliding minute, counted in the cache that all web processes share."""

import logging
import time
from functools import lru_cache
from typing import Any

from django.core.cache import cache
from django.core.cache.backends.redis import RedisCacheClient

logger = logging.getLogger(__name__)
WINDOW_S = 60


def seconds_to_wait(key: str, per_minute: int) -> int:
    """0 if one more request under `key` fits, else the seconds until it will.

    The last window counts in proportion to how much of it lies within the past minute: two counters per key instead
    of a timestamp per request. A cache that is away lets everyone in: a limit is a courtesy, not a lock.
    """
    now = time.time()
    window, into = divmod(now, WINDOW_S)
    current, last = f"limit:{key}:{window:.0f}", f"limit:{key}:{window - 1:.0f}"
    try:
        count, before = _counted(current, last)
    except Exception:  # redis and the in-memory cache share no error class
        logger.warning("rate limits are off: the cache does not answer", exc_info=True)
        return 0
    if count + before * (1 - into / WINDOW_S) <= per_minute:
        return 0
    return max(1, round(WINDOW_S - into))


@lru_cache(1)
def _client(server: RedisCacheClient) -> Any:
    """One client for good: Django makes one for each call, which costs more than the call."""
    return server.get_client(None, write=True)


def _counted(current: str, last: str) -> tuple[int, int]:
    """Adds one to `current`; its count and that of `last`."""
    server = getattr(cache, "_cache", None)
    if isinstance(server, RedisCacheClient):  # one round trip instead of five: every request of the API comes by here
        pipeline = _client(server).pipeline(transaction=False)
        pipeline.incr(cache.make_key(current))
        pipeline.expire(cache.make_key(current), 2 * WINDOW_S)
        pipeline.get(cache.make_key(last))
        count, _, before = pipeline.execute()
        return int(count), int(before or 0)
    cache.add(current, 0, 2 * WINDOW_S)
    return int(cache.incr(current)), int(cache.get(last, 0))
