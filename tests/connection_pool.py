"""Connections that a server's threads share, as in the product, instead of one for each request: the database would read for each what it
knows of the tables."""

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

from django.conf import settings
from django.db import connections

from tests.timeouts import SECONDS


@contextmanager
def shared_connections() -> Iterator[None]:
    """For threads that begin inside. The thread of the test keeps a connection of its own, and none is kept for the next test."""
    ours = connections["default"]
    told: dict[str, Any] = ours.settings_dict
    shared: dict[str, Any] = settings.DATABASES["default"]["OPTIONS"]  # type: ignore[assignment]
    pool: dict[str, Any] = {"min_size": 1, "max_size": settings.HTTP_THREADS + 8, "timeout": SECONDS}
    ours.settings_dict = {**told, "OPTIONS": {**told["OPTIONS"], "pool": None}}
    shared["pool"] = settings.DATABASE_POOL = pool  # `webapp.asgi` reads the second
    try:
        yield
    finally:
        shared["pool"] = settings.DATABASE_POOL = None
        ours.settings_dict = told
        if opened := type(ours)._connection_pools.pop("default", None):  # type: ignore[attr-defined]
            opened.close()
