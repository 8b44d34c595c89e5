"""Places and turns at an endpoint, alone and beside other runs."""

import asyncio

import pytest

from trainer.judges import gate as gate_module
from trainer.judges.gate import Gate, GrowingSemaphore


async def until(true):
    async with asyncio.timeout(30):
        while not true():
            await asyncio.sleep(0.001)


class Told:
    """A share that gives the answers that it was told to give."""

    def __init__(self, size):
        self.size, self.heard, self.left, self.clock = size, [], False, 0.0

    async def places(self, taken, wanted):
        self.heard.append((taken, wanted))
        return max(taken, self.size)

    async def turns(self, count):
        self.clock += 0.01 * count
        return self.clock - 0.01 * count, 0.01

    async def leave(self):
        self.left = True


async def test_places_grow_and_shrink_around_those_who_are_in():
    places, entered = GrowingSemaphore(1), []

    async def visit(number):
        await places.take()
        entered.append(number)

    tasks = [asyncio.create_task(visit(number)) for number in range(5)]
    await until(lambda: entered == [0])
    places.resize(3)
    await until(lambda: entered == [0, 1, 2])
    places.resize(1)
    places.give()
    places.give()
    await asyncio.sleep(0)
    assert (entered, places.taken, places.wanted) == ([0, 1, 2], 1, 3)
    places.give()
    await until(lambda: entered == [0, 1, 2, 3])
    tasks[4].cancel()
    await asyncio.gather(*tasks, return_exceptions=True)
    assert places.wanted == 1


async def test_a_place_handed_to_somebody_who_is_cancelled_goes_to_the_next():
    places = GrowingSemaphore(1)
    await places.take()
    first, second = (asyncio.create_task(places.take()) for _ in range(2))
    await asyncio.sleep(0)
    places.give()
    first.cancel()
    await second
    assert places.taken == 1


async def test_a_run_has_the_places_that_its_share_leaves_it(monkeypatch):
    monkeypatch.setattr(gate_module, "BEAT_S", 0.001)
    share, inside = Told(0), []

    async def call(gate, number):
        await gate.enter()
        inside.append(number)

    async with Gate(4, share=share) as gate:
        tasks = [asyncio.create_task(call(gate, number)) for number in range(4)]
        await until(lambda: (0, 4) in share.heard[1:])
        assert inside == []
        share.size = 2
        await until(lambda: len(inside) == 2)
        share.size = 4
        await until(lambda: len(inside) == 4)
        await asyncio.gather(*tasks)
        for _ in tasks:
            gate.leave()
    assert share.left


async def test_a_share_that_cannot_be_asked_leaves_the_run_what_it_has(monkeypatch):
    monkeypatch.setattr(gate_module, "BEAT_S", 0.001)
    share, tried = Told(2), []

    async def away(taken, wanted):
        tried.append(taken)
        raise OSError("no database")

    async with Gate(2, share=share) as gate:
        share.places = away  # type: ignore[method-assign]
        await until(lambda: len(tried) > 2)
        await asyncio.wait_for(gate.enter(), 30)
        gate.leave()


async def test_who_is_interrupted_asks_nobody_any_more():
    share = Told(1)
    with pytest.raises(asyncio.CancelledError):
        async with Gate(1, share=share):
            raise asyncio.CancelledError
    assert not share.left


async def test_turns_are_taken_in_blocks_and_kept_apart(monkeypatch):
    monkeypatch.setattr(gate_module, "BLOCK_S", 0.05)
    share, times = Told(10), []

    async def call(gate):
        await gate.enter()
        times.append(asyncio.get_running_loop().time())
        gate.leave()

    async with Gate(10, per_minute=6000, share=share) as gate:
        await asyncio.gather(*(call(gate) for _ in range(12)))
    assert len(times) == 12 and times[-1] - times[0] >= 0.1
    assert share.clock == pytest.approx(0.15)  # three blocks of five
