"""The cache that all web processes share."""

from functools import cached_property, lru_cache

from django.core.cache.backends.redis import RedisCache, RedisCacheClient


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
    return RedisCacheClient(list(servers))
