"""Rate limits over a sliding minute, in requests and in seconds of computing, counted in the cache that all web processes
share."""

import logging
import time
from collections.abc import Iterator
from contextlib import contextmanager
from functools import lru_cache
from typing import Any

from django.core.cache import cache
from django.core.cache.backends.redis import RedisCacheClient

from ..problems import Problem

logger = logging.getLogger(__name__)
WINDOW_S = 60
COMPUTING_S = 20.0  # of a minute that one person has the server compute for: see `count_seconds`


class TooMany(Problem):
    """429; `wait_s` goes into the header Retry-After."""

    def __init__(self, wait_s: int, said: str = "Too many requests") -> None:
        self.wait_s = wait_s
        super().__init__(f"{said}; try again in {wait_s} s.", code="too_many_requests", status=429)


@contextmanager
def count_seconds(whom: int | str) -> Iterator[None]:
    """Counts the seconds that the block takes for a person, by their id, or for all who have a link. Raises TooMany for who has had
    COMPUTING_S of them.

    For what is computed from files and texts of one's own: how much that is decides the text, not the number of requests.
    """
    most, key = int(COMPUTING_S * 1000), f"computing:{whom}"
    if wait := seconds_to_wait(key, most, by=0):
        raise TooMany(wait, f"The server has computed for you for {COMPUTING_S:g} of the last {WINDOW_S} seconds")
    began = time.monotonic()
    try:
        yield
    finally:
        seconds_to_wait(key, most, by=max(1, round((time.monotonic() - began) * 1000)))


def seconds_to_wait(key: str, per_minute: int, by: int = 1) -> int:
    """0 if one more request (or `by` of what is counted) under `key` fits, else the seconds until it will.

    The last window counts in proportion to how much of it lies within the past minute: two counters per key instead
    of a timestamp per request. A cache that is away lets everyone in: a limit is a courtesy, not a lock.
    """
    now = time.time()
    window, into = divmod(now, WINDOW_S)
    current, last = f"limit:{key}:{window:.0f}", f"limit:{key}:{window - 1:.0f}"
    try:
        count, before = _counted(current, last, by)
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


def _counted(current: str, last: str, by: int) -> tuple[int, int]:
    """Adds `by` to `current`; its count and that of `last`."""
    server = getattr(cache, "_cache", None)
    if isinstance(server, RedisCacheClient):  # one round trip instead of five: every request of the API comes by here
        pipeline = _client(server).pipeline(transaction=False)
        pipeline.incr(cache.make_key(current), by)
        pipeline.expire(cache.make_key(current), 2 * WINDOW_S)
        pipeline.get(cache.make_key(last))
        count, _, before = pipeline.execute()
        return int(count), int(before or 0)
    cache.add(current, 0, 2 * WINDOW_S)
    return int(cache.incr(current, by)), int(cache.get(last, 0))
