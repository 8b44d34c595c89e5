"""Since when a missing sign of life means something."""

from datetime import datetime

from django.core.cache import cache

DEAF_AFTER_S = 30  # a gap between two rounds of upkeep during which we may have missed signs of life


def alive_since(key: str, now: datetime, hears: bool = True) -> datetime:
    """Since when there was a round of upkeep under `key` at least every half minute, on a clock that was not set; silence counts only
    from then on. `now` if there was none, or where signs of life cannot reach us (`hears`).

    After an outage of ours everybody seems silent, though each only waits to be heard; and so on a clock that was set forward.
    """
    begin, last = map(datetime.fromisoformat, cache.get(key) or (now.isoformat(), now.isoformat()))
    if not hears:
        cache.delete(key)
        return now
    if not 0 <= (now - last).total_seconds() <= DEAF_AFTER_S:
        begin = now
    cache.set(key, (begin.isoformat(), now.isoformat()), None)
    return begin
