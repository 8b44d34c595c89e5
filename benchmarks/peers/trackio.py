"""Trackio with its own server and its SQLite, addressed over HTTP as by its client and its page."""

import os
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import httpx

from benchmarks.live.sizes import name, numbers, timed, value
from benchmarks.peers import PeerAway, installed
from benchmarks.peers.people import served
from webapp.localstack.ports import free_port

STARTS = """
import sys, trackio
trackio.show(open_browser=False, block_thread=True, server_port=int(sys.argv[1]))
"""
PROJECT = "bench"
AT_ONCE = 1_000  # steps of a request that fills


class Trackio:
    steps_at_once = 50

    def __init__(self, address: str) -> None:
        headers = {"x-trackio-write-token": "bench"}
        self._http = httpx.Client(base_url=address, headers=headers, timeout=600)
        self._steps = numbers(10**7)

    def _call(self, path: str, **given: Any) -> Any:
        answer = self._http.post(f"/api/{path}", json={"args": [], "kwargs": given})
        if not answer.is_success or answer.json().get("error"):
            raise PeerAway(f"its {path} answers {answer.text[:200]}")
        return answer.json()["data"]

    def _log(self, run: str, steps: range, keys: int) -> None:
        logs = [
            {
                "project": PROJECT, "run": run, "run_id": run, "step": step, "config": None,
                "metrics": {name(key): value(key, step) for key in range(keys)},
            }
            for step in steps
        ]  # fmt: skip
        self._call("bulk_log", logs=logs, hf_token=None)

    def send(self, sender: int, first: int, steps: int, keys: int) -> None:
        self._log(f"sender{sender}", range(first, first + steps), keys)

    def fill_charts(self, charts: int, points: int) -> None:
        for first in range(0, points, AT_ONCE):
            self._log("charts", range(first, min(points, first + AT_ONCE)), charts)

    def charts(self, charts: int) -> float:
        step = next(self._steps)
        self._log("charts", range(step, step + 1), charts)
        return timed(lambda: self._call("get_logs", project=PROJECT, run="charts", run_id="charts"))

    def fill_runs(self, runs: int, points: int) -> None:
        for run in range(runs):
            for first in range(0, points, AT_ONCE):
                self._log(f"run{run}", range(first, min(points, first + AT_ONCE)), 1)

    def compare(self, runs: int) -> float:
        step = next(self._steps)
        for run in range(runs):
            self._log(f"run{run}", range(step, step + 1), 1)
        asked = [{"run": f"run{run}", "run_id": f"run{run}"} for run in range(runs)]
        return timed(lambda: self._call("get_logs_batch", project=PROJECT, runs=asked))


@contextmanager
def started(folder: Path) -> Iterator[Trackio]:
    """Raises PeerAway."""
    python, port = installed("trackio", "trackio") / "python", free_port(0)
    env = {**os.environ, "TRACKIO_DIR": str(folder / "data"), "TRACKIO_WRITE_TOKEN": "bench", "HOME": str(folder)}
    with served([str(python), "-c", STARTS, str(port)], folder, port, env) as address:
        yield Trackio(address)
