"""The judge: a chat endpoint in its own process, which is also killed and started again on the same port.

`python -m benchmarks.chaos.judge --port P --ledger FILE` writes down each question before it answers. The answer follows from
the question alone, so that a repeated question gets the same answer.
"""

import argparse
import asyncio
import hashlib
import json
import subprocess
import sys
import threading
from pathlib import Path
from typing import Any

from benchmarks.chatserver import ChatServer

from .ledger import Ledger

COMPARES = "compares"  # the beginning of the names of models that compare two responses; other models decide criteria


def question(body: dict[str, Any]) -> str:
    return hashlib.sha256(json.dumps(body["messages"], sort_keys=True).encode()).hexdigest()


def said(body: dict[str, Any]) -> str:
    even = int(question(body)[:8], 16) % 2 == 0
    if str(body["model"]).startswith(COMPARES):
        return json.dumps({"reasons": ["So it reads."], "verdict": "A" if even else "B"})
    return json.dumps({"explanation": "So it reads.", "met": even})


class JudgeProcess:
    """Keeps one judge running: after any kill, the next one is started at once."""

    def __init__(self, port: int, ledger: Path, latency_s: float) -> None:
        self.port, self._ledger, self._latency_s = port, ledger, latency_s
        self._closed = threading.Event()
        self._process = self._start()
        self._keeper = threading.Thread(target=self._keep, daemon=True)
        self._keeper.start()

    @property
    def url(self) -> str:
        return f"http://127.0.0.1:{self.port}/v1"

    @property
    def pid(self) -> int | None:
        return self._process.pid if self._process.poll() is None else None

    def _keep(self) -> None:
        while not self._closed.wait(0.2):
            if self._process.poll() is not None:
                self._process = self._start()

    def close(self) -> None:
        self._closed.set()
        self._keeper.join()
        self._process.kill()
        self._process.wait()

    def _start(self) -> subprocess.Popen[bytes]:
        given = ["--port", str(self.port), "--ledger", str(self._ledger), "--latency-s", str(self._latency_s)]
        return subprocess.Popen([sys.executable, "-m", "benchmarks.chaos.judge", *given])


async def _serve(port: int, path: Path, latency_s: float) -> None:
    ledger = Ledger(path)

    def answer(body: dict[str, Any]) -> str:
        ledger.write("asked", model=body["model"], question=question(body))
        return said(body)

    async with ChatServer(port=port, answer=answer, latency_s=latency_s):
        await asyncio.Event().wait()


def main() -> None:
    parser = argparse.ArgumentParser(prog="python -m benchmarks.chaos.judge", description=__doc__)
    parser.add_argument("--port", type=int, required=True)
    parser.add_argument("--ledger", type=Path, required=True)
    parser.add_argument("--latency-s", type=float, default=0.05)
    options = parser.parse_args()
    asyncio.run(_serve(options.port, options.ledger, options.latency_s))


if __name__ == "__main__":
    main()
