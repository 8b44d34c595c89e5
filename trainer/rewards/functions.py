"""A user's own reward from an installed package: a function under an entry point of the group `touchstone.rewards`.

    [project.entry-points."touchstone.rewards"]
    politeness = "my_package.rewards:politeness"

    def politeness(responses: list[dict]) -> list[float | None | dict]: ...

It runs in a child process, which keeps what the function prints, imports or breaks, and which can be ended if it is late. Only names
that TOUCHSTONE_REWARD_FUNCTIONS allows are imported: who installs a package does not yet trust it with a run.
"""

import asyncio
import json
import os
import sys
from collections.abc import Mapping, Sequence
from contextlib import suppress

from .parts import JSON, Unscored

KEYS = frozenset({"TOUCHSTONE_RUN_TOKEN", "RAY_AUTH_TOKEN", "RAY_AUTH_TOKEN_PATH"})
START_S = 60.0
"""The time for the import of the package. It does not count for the first group."""
_LONGEST_LINE = 64_000_000


def _environment() -> dict[str, str]:
    """The environment of this process, without the keys of the run for its server and its cluster."""
    return {name: value for name, value in os.environ.items() if name not in KEYS}


class Function:
    """`answer` calls the function with a group of responses. Calls wait for each other; the first one starts the child process."""

    def __init__(self, name: str, command: Sequence[str] | None = None) -> None:
        self._command = command or (sys.executable, "-m", "trainer.reward_process", name)
        self._process: asyncio.subprocess.Process | None = None
        self._turn = asyncio.Lock()

    async def answer(self, responses: Sequence[Mapping[str, JSON]], seconds: float | None = None) -> JSON:
        async with self._turn:
            process = await self._started()
            try:
                async with asyncio.timeout(seconds):
                    return await self._exchange(process, json.dumps(list(responses)))
            except TimeoutError:
                await self.close()
                raise Unscored(f"took longer than {seconds:g} s") from None
            except asyncio.CancelledError:
                await self.close()  # a late answer must not be taken for that to the next question
                raise

    async def close(self) -> None:
        if self._process is not None:
            with suppress(ProcessLookupError):
                self._process.kill()
            await self._process.wait()
            self._process = None

    async def _started(self) -> asyncio.subprocess.Process:
        if self._process is None or self._process.returncode is not None:
            pipe = asyncio.subprocess.PIPE
            self._process = await asyncio.create_subprocess_exec(
                *self._command, env=_environment(), stdin=pipe, stdout=pipe, limit=_LONGEST_LINE
            )
            try:
                async with asyncio.timeout(START_S):
                    await self._line(self._process)
            except TimeoutError:
                await self.close()
                raise Unscored(f"its package was not imported within {START_S:g} s") from None
        return self._process

    async def _exchange(self, process: asyncio.subprocess.Process, line: str) -> JSON:
        assert process.stdin is not None  # noqa: S101  # asked for as a pipe
        with suppress(ConnectionError, BrokenPipeError):  # then there is no answer either; reading it gives the reason
            process.stdin.write(line.encode() + b"\n")
            await process.stdin.drain()
        return await self._line(process)

    async def _line(self, process: asyncio.subprocess.Process) -> JSON:
        """The next line of the child. Raises Unscored with its problem, or if the child has ended."""
        assert process.stdout is not None  # noqa: S101
        try:
            line = await process.stdout.readline()
        except ValueError:
            await self.close()
            raise Unscored(f"answered more than {_LONGEST_LINE:,} bytes") from None
        if not line:
            status = await process.wait()
            self._process = None
            raise Unscored(f"its process ended with status {status}")
        found = json.loads(line)
        if "problem" in found:
            raise Unscored(found["problem"])
        return found["answer"]
