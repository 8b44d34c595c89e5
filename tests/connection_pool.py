"""Connections that a server's threads share, as in the product, instead of one for each request: the database would read for each what it
knows of the tables. They stay for the servers of later tests, because this reading took a fifth of a second in each test."""

import time
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

from django.conf import settings
from django.db import connections
from psycopg_pool import ConnectionPool

from tests.timeouts import SECONDS

RETURNED_S = 2.0
_kept: dict[tuple[str, str], ConnectionPool] = {}


@contextmanager
def shared_connections() -> Iterator[None]:
    """For threads that begin inside. The thread of the test keeps a connection of its own."""
    ours = connections["default"]
    told: dict[str, Any] = ours.settings_dict
    shared: dict[str, Any] = settings.DATABASES["default"]["OPTIONS"]  # type: ignore[assignment]
    pool: dict[str, Any] = {"min_size": 1, "max_size": settings.HTTP_THREADS + 8, "timeout": SECONDS}
    pools: dict[str, ConnectionPool] = type(ours)._connection_pools  # type: ignore[attr-defined]
    database = (told["NAME"], ours.timezone_name)
    ours.settings_dict = {**told, "OPTIONS": {**told["OPTIONS"], "pool": None}}
    shared["pool"] = settings.DATABASE_POOL = pool  # `webapp.asgi` reads the second
    if database in _kept:
        pools["default"] = _kept.pop(database)
    try:
        yield
    finally:
        shared["pool"] = settings.DATABASE_POOL = None
        ours.settings_dict = told
        if opened := pools.pop("default", None):
            if _all_are_back(opened):
                _kept[database] = opened
            else:
                opened.close()


def _all_are_back(pool: ConnectionPool) -> bool:
    """Whether no thread holds a connection, with a transaction that nobody would end."""
    deadline = time.monotonic() + RETURNED_S
    while time.monotonic() < deadline:
        found = pool.get_stats()
        if found["pool_available"] == found["pool_size"]:
            return True
        time.sleep(0.01)
    return False


def close() -> None:
    """Before the database is removed."""
    while _kept:
        _kept.popitem()[1].close()
