"""People at an annotation tool, over HTTP: each repeats what its page does between two tasks."""

import asyncio
import contextlib
import subprocess
import time
from collections.abc import Awaitable, Callable, Iterator
from dataclasses import dataclass, field
from pathlib import Path

import httpx

from benchmarks.peers import PeerAway

START_S = 300
TEXT = "The quick brown fox jumps over the lazy dog and tells everybody about it at some length. " * 14

Step = Callable[[], Awaitable[None]]
Enter = Callable[[httpx.AsyncClient, int], Awaitable[Step]]  # signs person number n in


@dataclass
class Load:
    """The result of the people's work: seconds of each submission with the task after it, and what failed."""

    elapsed: float = 0.0
    took: list[float] = field(default_factory=list)
    failed: list[str] = field(default_factory=list)

    @property
    def rate(self) -> float:
        return len(self.took) / self.elapsed

    @property
    def p95_ms(self) -> float:
        return sorted(self.took)[int(0.95 * (len(self.took) - 1))] * 1000


async def work(
    address: str, people: int, seconds: float, enter: Enter, transport: httpx.AsyncBaseTransport | None = None
) -> Load:
    """Sign everybody in, and let each do one `step` after the other until the time is over. Raises PeerAway."""
    load = Load()
    async with contextlib.AsyncExitStack() as stack:
        clients = [
            httpx.AsyncClient(base_url=address, timeout=120, follow_redirects=True, transport=transport)
            for _ in range(people)
        ]
        for client in clients:
            await stack.enter_async_context(client)
        steps = [await enter(client, number) for number, client in enumerate(clients)]
        started = time.monotonic()

        async def person(step: Step) -> None:
            while time.monotonic() < started + seconds:
                began = time.perf_counter()
                try:
                    await step()
                except (httpx.HTTPError, PeerAway) as error:
                    load.failed.append(repr(error))
                else:
                    load.took.append(time.perf_counter() - began)

        await asyncio.gather(*map(person, steps))
        load.elapsed = time.monotonic() - started
    if not load.took:
        raise PeerAway(f"no submission got through: {(load.failed or ['nothing was tried'])[0][:200]}")
    return load


@contextlib.contextmanager
def served(command: list[str], folder: Path, port: int, env: dict[str, str] | None = None) -> Iterator[str]:
    """The address of the tool's server once it answers at /health. Raises PeerAway with the last lines of its output."""
    log = folder / "log"
    with log.open("w") as written:
        server = subprocess.Popen(command, cwd=folder, stdout=written, stderr=subprocess.STDOUT, env=env)
    try:
        yield _up(f"http://127.0.0.1:{port}", server, log)
    finally:
        server.terminate()
        server.wait(60)


def call(command: list[str], folder: Path, env: dict[str, str]) -> None:
    """Run a program. Raises PeerAway with the last lines of its output if it fails."""
    done = subprocess.run(command, cwd=folder, env=env, capture_output=True, text=True, check=False)
    if done.returncode:
        said = done.stderr.strip().splitlines() or ["it said nothing"]
        raise PeerAway(f"{' '.join(command[1:3])} failed: {said[-1][:200]}")


def _up(address: str, server: subprocess.Popen[bytes], log: Path) -> str:
    end = time.monotonic() + START_S
    while time.monotonic() < end and server.poll() is None:
        with contextlib.suppress(httpx.HTTPError):
            if httpx.get(f"{address}/health", timeout=5).status_code < 500:
                return address
        time.sleep(0.5)
    said = log.read_text().strip().splitlines() or ["it said nothing"]
    raise PeerAway(f"it did not start: {said[-1][:200]}")
