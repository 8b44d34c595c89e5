"""People who watch runs as their browsers do; run as a separate process by `benchmarks.soak`.

Reads one JSON object from stdin: `{"address", "cookies": [...], "runs": [...], "seconds", "again_s"}`. Each viewer opens a run's page,
loads its curves and follows its websocket. It reconnects as the page does when the connection is lost, and opens the page again every
`again_s` seconds on average. Prints one JSON object: milliseconds of pages, curves and openings with the second of each request, counts of
messages, resyncs and lost connections, and errors.
"""

import asyncio
import json
import random
import sys
import time
from collections import Counter
from collections.abc import Awaitable, Callable
from typing import Any

import aiohttp

FIRST_WAIT_S, LONGEST_WAIT_S = 0.5, 20.0  # as socket.js


class Crowd:
    def __init__(self, config: dict[str, Any]) -> None:
        self.config = config
        self.began = time.monotonic()
        self.until = self.began + config["seconds"]
        self.took: dict[str, list[tuple[float, float]]] = {"page": [], "curves": [], "websocket": []}
        self.counts: Counter[str] = Counter()
        self.errors: Counter[str] = Counter()

    async def timed(self, name: str, work: Callable[[], Awaitable[Any]]) -> Any:
        at, started = time.monotonic() - self.began, time.perf_counter()
        found = await work()
        self.took[name].append((round(at, 1), round((time.perf_counter() - started) * 1000, 2)))
        return found

    async def look(self, number: int, draw: random.Random) -> None:
        """One viewer, until the time is over."""
        headers = {"Cookie": self.config["cookies"][number], "Origin": self.config["address"]}
        await asyncio.sleep(
            draw.random() * min(10.0, self.config["seconds"] / 4)
        )  # viewers do not all come in the same second
        async with aiohttp.ClientSession(
            self.config["address"], headers=headers, cookie_jar=aiohttp.DummyCookieJar()
        ) as session:
            while time.monotonic() < self.until:
                run = draw.choice(self.config["runs"])
                stays = min(draw.expovariate(1 / self.config["again_s"]) + 1, self.until - time.monotonic())
                try:
                    await self.get(session, "page", f"/runs/{run}")
                    await self.get(session, "curves", f"/api/v1/runs/{run}/curves")
                    await self.follow(session, f"/ws/runs/{run}", time.monotonic() + stays)
                except (aiohttp.ClientError, TimeoutError) as error:
                    self.errors[f"{type(error).__name__}: {error}"[:200]] += 1
                    await asyncio.sleep(FIRST_WAIT_S)

    async def get(self, session: aiohttp.ClientSession, name: str, path: str) -> None:
        async def read() -> None:
            async with session.get(path, timeout=aiohttp.ClientTimeout(60), allow_redirects=False) as answer:
                await answer.read()
                if answer.status != 200:
                    self.errors[f"{name}: {answer.status}"] += 1

        await self.timed(name, read)

    async def follow(self, session: aiohttp.ClientSession, path: str, until: float) -> None:
        wait = FIRST_WAIT_S
        while time.monotonic() < until:
            try:
                socket = await self.timed("websocket", lambda: session.ws_connect(path))
            except aiohttp.WSServerHandshakeError as error:
                self.errors[f"websocket: {error.status}"] += 1
            else:
                wait = FIRST_WAIT_S
                if await self.listen(socket, until):
                    return
            self.counts["reconnects"] += 1
            await asyncio.sleep(wait)
            wait = min(wait * 2, LONGEST_WAIT_S)

    async def listen(self, socket: aiohttp.ClientWebSocketResponse, until: float) -> bool:
        """True when the viewer left, False when the server did."""
        try:
            while (left := until - time.monotonic()) > 0:
                try:
                    message = await socket.receive(timeout=left)
                except TimeoutError:
                    break
                if message.type is not aiohttp.WSMsgType.TEXT:
                    return False
                self.counts["messages"] += 1
                self.counts["resyncs"] += json.loads(message.data)["type"] == "resync"
            return True
        finally:
            await socket.close()


async def main(config: dict[str, Any]) -> dict[str, Any]:
    crowd = Crowd(config)
    seeds = range(len(config["cookies"]))
    await asyncio.gather(*(crowd.look(number, random.Random(number)) for number in seeds))  # noqa: S311
    return {"took": crowd.took, "counts": crowd.counts, "errors": crowd.errors}


if __name__ == "__main__":
    print(json.dumps(asyncio.run(main(json.load(sys.stdin)))))
