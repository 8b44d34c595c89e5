"""The cache that all web processes share."""

import json
from functools import cached_property, lru_cache
from typing import Any

from django.core.cache.backends.redis import RedisCache, RedisCacheClient


class JsonSerializer:
    """Values as JSON: a person who can write into Redis must not be able to run code here, which pickle would allow.

    Tuples come back as lists. Integers are stored bare, as `incr` needs them.
    """

    def dumps(self, obj: Any) -> Any:
        return obj if type(obj) is int else json.dumps(obj).encode()

    def loads(self, data: Any) -> Any:
        return json.loads(data)


class SharedRedisCache(RedisCache):
    """Django's Redis cache with one pool of connections for the process.

    Django keeps its cache objects per context, and every request is a context of its own: each would open a connection,
    which costs more than all that is asked of it.
    """

    _servers: list[str]

    @cached_property
    def _cache(self) -> RedisCacheClient:
        return _client(tuple(self._servers))


@lru_cache
def _client(servers: tuple[str, ...]) -> RedisCacheClient:
    return RedisCacheClient(list(servers), serializer=JsonSerializer())
