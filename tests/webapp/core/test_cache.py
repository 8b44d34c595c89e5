"""A process has one pool of connections to Redis, and cached values cannot run code when they are read."""

import pickle

import pytest
from django.core.cache import CacheHandler

from webapp.core.cache import JsonSerializer

CONFIG = {"default": {"BACKEND": "webapp.core.cache.SharedRedisCache", "LOCATION": "redis://localhost:1"}}


def test_every_request_uses_the_same_connections() -> None:
    """Django makes one cache object for each context, and a request is a context. Here a separate handler represents a request."""
    one, other = (CacheHandler(CONFIG)["default"]._cache.get_client().connection_pool for _ in range(2))  # type: ignore[attr-defined]
    assert one is other


@pytest.mark.parametrize("value", [0, 7, True, None, 0.5, "é\u2028", [1.0, 2.0], {"a": [None, "b"]}])
def test_what_goes_into_redis_comes_out_the_same(value):
    stored = JsonSerializer().dumps(value)
    found = JsonSerializer().loads(str(stored).encode() if isinstance(stored, int) else stored)
    assert found == value and type(found) is type(value)


def test_a_pickle_in_redis_is_not_opened():
    with pytest.raises(ValueError):
        JsonSerializer().loads(pickle.dumps({"a": 1}))
