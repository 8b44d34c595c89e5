"""One pool of connections to Redis for the process."""

from django.core.cache import CacheHandler

CONFIG = {"default": {"BACKEND": "webapp.core.cache.SharedRedisCache", "LOCATION": "redis://localhost:1"}}


def test_every_request_uses_the_same_connections() -> None:
    """Django makes a cache object per context, and a request is one; a handler of its own stands for that here."""
    one, other = (CacheHandler(CONFIG)["default"]._cache.get_client().connection_pool for _ in range(2))
    assert one is other
