"""The gate lets a request leave when it has a free place and its turn. A run has a gate alone, or shares it with other runs on its
endpoint."""

import asyncio
from collections import deque
from contextlib import suppress
from math import ceil
from types import TracebackType
from typing import Protocol, Self

BEAT_S = 0.5  # between two questions how many places are free
BLOCK_S = 1.0  # turns are taken for so long at a time: a run that is killed wastes no more than these


class SharedLimits(Protocol):
    """The limits that a run shares with others on its endpoint. It asks for its part now and then, never for each request."""

    async def places(self, taken: int, wanted: int) -> int:
        """The number of requests that this run may have in flight from now on; `taken` are in flight. The call is also the run's
        heartbeat."""
        ...

    async def turns(self, count: int) -> tuple[float, float]:
        """Takes the next `count` turns for this run: (seconds until the first, seconds between two of them)."""
        ...

    async def leave(self) -> None:
        """Gives all places back."""
        ...


class Gate:
    """`async with Gate(...) as gate: async with gate.place(): ...`, from any number of tasks."""

    def __init__(self, concurrency: int, per_minute: int | None = None, share: SharedLimits | None = None) -> None:
        self.concurrency, self.share = concurrency, share
        self.places = GrowingSemaphore(concurrency if share is None else 0)
        self.pace = RequestPace(per_minute, share)
        self._keeping: asyncio.Task[None] | None = None

    async def __aenter__(self) -> Self:
        if self.share is not None:
            self.places.resize(await self.share.places(0, self.concurrency))
            self._keeping = asyncio.create_task(self._keep(self.share))
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        if self._keeping is None or self.share is None:
            return
        self._keeping.cancel()
        if kind is None or not issubclass(kind, asyncio.CancelledError):  # after a cancel nobody answers
            await self.share.leave()

    async def enter(self) -> None:
        """Waits for a place and for a turn. A task that has entered must leave."""
        await self.places.take()
        try:
            await self.pace.turn()
        except BaseException:
            self.places.give()
            raise

    def leave(self) -> None:
        self.places.give()

    async def _keep(self, share: SharedLimits) -> None:
        while True:
            await asyncio.sleep(BEAT_S)
            with suppress(Exception):  # a run that cannot ask keeps what it has
                self.places.resize(await share.places(self.places.taken, self.places.wanted))


class GrowingSemaphore:
    """A semaphore that can grow and shrink. Tasks that have entered keep their places."""

    def __init__(self, size: int) -> None:
        self.size, self.taken = size, 0
        self._waiting: deque[asyncio.Future[None]] = deque()

    @property
    def wanted(self) -> int:
        return self.taken + len(self._waiting)

    async def take(self) -> None:
        if self.taken < self.size and not self._waiting:
            self.taken += 1
            return
        place = asyncio.get_running_loop().create_future()
        self._waiting.append(place)
        try:
            await place
        except asyncio.CancelledError:
            if place.done() and not place.cancelled():
                self.give()  # it was handed over at the moment we were cancelled
            else:
                self._waiting.remove(place)
            raise

    def give(self) -> None:
        self.taken -= 1
        self._hand_over()

    def resize(self, size: int) -> None:
        self.size = size
        self._hand_over()

    def _hand_over(self) -> None:
        while self._waiting and self.taken < self.size:
            place = self._waiting.popleft()
            if not place.done():
                self.taken += 1
                place.set_result(None)


class RequestPace:
    """Requests start at even distances. None starts while the endpoint has asked for a pause."""

    def __init__(self, per_minute: int | None, share: SharedLimits | None = None) -> None:
        self._share = share if per_minute else None
        self._distance = 60.0 / per_minute if per_minute else 0.0
        self._block = max(1, ceil(BLOCK_S / self._distance)) if self._distance else 0
        self._left = 0  # turns of the block that was taken last
        self._next = self._rest = 0.0
        self._asking = asyncio.Lock()

    async def turn(self) -> None:
        now = asyncio.get_running_loop().time()
        if self._distance == 0.0 and self._rest <= now:
            return
        if self._share is None:
            mine = max(now, self._next, self._rest)
            self._next = mine + self._distance
        else:
            mine = await self._of_the_block(self._share)
        await asyncio.sleep(max(mine, self._rest) - asyncio.get_running_loop().time())

    def rest(self, seconds: float) -> None:
        """No request starts for so long. Turns that were taken before are forgotten, so that they do not all come at once afterwards."""
        self._rest = max(self._rest, asyncio.get_running_loop().time() + seconds)
        self._left = 0

    async def _of_the_block(self, share: SharedLimits) -> float:
        clock = asyncio.get_running_loop().time
        async with self._asking:
            while not self._left:
                await asyncio.sleep(max(0.0, self._rest - clock()))
                wait, self._distance = await share.turns(self._block)
                self._next, self._left = clock() + wait, self._block
            mine = self._next
            self._next += self._distance
            self._left -= 1
        return mine
