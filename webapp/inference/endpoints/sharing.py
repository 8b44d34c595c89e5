"""The limits of an endpoint hold for all runs together that ask it at the same time, in any process.

Runs lease their requests in flight. Twice a second a run says how many it has and wants, and is told how many it may have. No run gets a
place that another still holds, so all runs together never exceed the limit. A lease that is not renewed runs out. The requests per
minute are given out as turns, in blocks of a second, by one clock. A single request needs no call of the database.
"""

import asyncio
from collections.abc import Callable, Sequence
from concurrent.futures import Executor
from datetime import datetime, timedelta
from typing import Any
from uuid import UUID, uuid4

from django.db import connection, transaction
from django.db.models import Q

from webapp.core.tasks import AHEAD

from ..models import Endpoint, EndpointLease

LEASE = timedelta(seconds=15)


def fair(size: int, mine: int, others: Sequence[int]) -> int:
    """The number of the `size` places that a run may have that wants `mine`, if `others` is what the other runs want.

    Small wants are met first; the rest is shared evenly. A run gets more than it wants only of places that nobody wants.
    """
    left, waiting = size, len(others) + 1
    for want in sorted(others):
        left -= min(want, left // waiting)
        waiting -= 1
    return min(left, max(mine, size - sum(others)))


@transaction.atomic
def places(endpoint_id: int, holder: UUID, taken: int, wanted: int) -> int:
    """Renews the run's lease; the number of requests it may have in flight now, never less than `taken`."""
    size = _locked(endpoint_id).concurrency
    now = _now()
    over = Q(expires_at__lt=now) | Q(
        expires_at__gt=now + LEASE
    )  # nobody's is longer: written before the clock went back
    EndpointLease.objects.filter(over, endpoint_id=endpoint_id).delete()
    others = list(
        EndpointLease.objects.filter(endpoint_id=endpoint_id).exclude(holder=holder).values_list("granted", "wanted")
    )
    free = size - sum(granted for granted, _ in others)
    granted = max(taken, min(free, fair(size, max(1, wanted), [max(1, want) for _, want in others])), 0)
    fields = {"granted": granted, "wanted": wanted, "expires_at": now + LEASE}
    EndpointLease.objects.update_or_create(endpoint_id=endpoint_id, holder=holder, defaults=fields)
    return granted


@transaction.atomic
def turns(endpoint_id: int, count: int) -> tuple[float, float]:
    """Gives the run `count` turns: (seconds until the first, seconds between two of them)."""
    endpoint = _locked(endpoint_id)
    if not endpoint.requests_per_minute:  # somebody has lifted the limit meanwhile
        return 0.0, 0.0
    now, distance = _now(), 60.0 / endpoint.requests_per_minute
    first = max(now, endpoint.next_turn_at or now)
    runs = EndpointLease.objects.filter(endpoint_id=endpoint_id).count()
    if first - now > AHEAD + timedelta(
        seconds=(runs + 1) * count * distance
    ):  # no run has more than a block: the clock went back
        first = now
    Endpoint.objects.filter(pk=endpoint_id).update(next_turn_at=first + timedelta(seconds=count * distance))
    return (first - now).total_seconds(), distance


def leave(endpoint_id: int, holder: UUID) -> None:
    EndpointLease.objects.filter(endpoint_id=endpoint_id, holder=holder).delete()


def _locked(endpoint_id: int) -> Endpoint:
    return Endpoint.objects.select_for_update(no_key=True).get(pk=endpoint_id)


def _now() -> datetime:
    """The time by the database's clock, which all runs share. The time of the transaction may be old: it may have waited for the lock."""
    with connection.cursor() as cursor:
        cursor.execute("SELECT clock_timestamp()")
        found: datetime = cursor.fetchone()[0]
    return found


class EndpointShare:
    """The Share of one run. Its event loop asks; a thread of `executor` (None: of the loop's executor) asks the database."""

    def __init__(self, endpoint_id: int, executor: Executor | None) -> None:
        self.endpoint_id, self.executor, self.holder = endpoint_id, executor, uuid4()

    async def places(self, taken: int, wanted: int) -> int:
        return int(await self._beside(places, self.endpoint_id, self.holder, taken, wanted))

    async def turns(self, count: int) -> tuple[float, float]:
        wait, distance = await self._beside(turns, self.endpoint_id, count)
        return float(wait), float(distance)

    async def leave(self) -> None:
        await self._beside(leave, self.endpoint_id, self.holder)

    async def _beside(self, function: Callable[..., Any], *arguments: Any) -> Any:
        return await asyncio.get_running_loop().run_in_executor(self.executor, function, *arguments)
