"""MLflow's tracking server with its SQLite, addressed over HTTP as by its client and its page.

What its charts and comparisons read is written into its database directly, because over HTTP it would take minutes.
"""

import os
import sqlite3
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import httpx

from benchmarks.live.sizes import START_MS, name, numbers, timed, value
from benchmarks.peers import PeerAway, installed
from benchmarks.peers.people import served
from webapp.localstack.ports import free_port

API = "/api/2.0/mlflow"
HISTORY = "/ajax-api/2.0/mlflow/metrics/get-history-bulk-interval"
MOST_METRICS = 1_000  # of a request
DRAWN = 320  # points of a curve that its page asks for
AT_ONCE = 6  # requests that a browser has under way


class Mlflow:
    def __init__(self, address: str, database: Path) -> None:
        self._http = httpx.Client(base_url=address, timeout=600)
        self._database = database
        self._steps = numbers(10**7)
        self._runs: dict[str, str] = {}
        self.steps_at_once = 10  # of 100 metrics

    def _post(self, path: str, **given: Any) -> Any:
        answer = self._http.post(f"{API}/{path}", json=given)
        if not answer.is_success:
            raise PeerAway(f"its {path} answers {answer.text[:200]}")
        return answer.json()

    def _run(self, label: str) -> str:
        if label not in self._runs:
            made = self._post("runs/create", experiment_id="0", start_time=START_MS, run_name=label)
            self._runs[label] = made["run"]["info"]["run_id"]
        return self._runs[label]

    def _log(self, run: str, steps: range, keys: int) -> None:
        metrics = [
            {"key": name(key), "value": value(key, step), "timestamp": START_MS + step, "step": step}
            for step in steps
            for key in range(keys)
        ]
        for first in range(0, len(metrics), MOST_METRICS):
            self._post("runs/log-batch", run_id=self._run(run), metrics=metrics[first : first + MOST_METRICS])

    def send(self, sender: int, first: int, steps: int, keys: int) -> None:
        self._log(f"sender{sender}", range(first, first + steps), keys)

    def _fill(self, run: str, keys: int, points: int) -> None:
        rows = (
            (name(key), value(key, step), START_MS + step, self._run(run), step, 0)
            for key in range(keys)
            for step in range(points)
        )
        with sqlite3.connect(self._database, timeout=60) as database:
            database.executemany(
                "INSERT INTO metrics (key, value, timestamp, run_uuid, step, is_nan) VALUES (?, ?, ?, ?, ?, ?)", rows
            )

    def fill_charts(self, charts: int, points: int) -> None:
        self._run("charts")
        self._fill("charts", charts, points)

    def charts(self, charts: int) -> float:
        step = next(self._steps)
        self._log("charts", range(step, step + 1), charts)
        keys = [name(key) for key in range(charts)]
        run = self._run("charts")
        with ThreadPoolExecutor(AT_ONCE) as pool:
            return timed(lambda: list(pool.map(lambda key: self._history([run], key), keys)))

    def _history(self, runs: list[str], key: str) -> None:
        asked: dict[str, Any] = {"run_ids": runs, "metric_key": key, "max_results": DRAWN}
        answer = self._http.get(HISTORY, params=asked)
        if not answer.is_success:
            raise PeerAway(f"its histories answer {answer.text[:200]}")

    def fill_runs(self, runs: int, points: int) -> None:
        for run in range(runs):
            self._log(f"run{run}", range(points, points + 1), 1)
            self._fill(f"run{run}", 1, points)

    def compare(self, runs: int) -> float:
        step = next(self._steps)
        ids = [self._run(f"run{run}") for run in range(runs)]
        for run in range(runs):
            self._log(f"run{run}", range(step, step + 1), 1)

        def read() -> None:
            self._post("runs/search", experiment_ids=["0"], max_results=runs)
            self._history(ids, name(0))

        return timed(read)


@contextmanager
def started(folder: Path) -> Iterator[Mlflow]:
    """Raises PeerAway."""
    program, port, database = installed("mlflow", "mlflow") / "mlflow", free_port(0), folder / "mlflow.db"
    command = [str(program), "server", "--host", "127.0.0.1", "--port", str(port)]
    command += ["--backend-store-uri", f"sqlite:///{database}", "--artifacts-destination", str(folder / "files")]
    env = {**os.environ, "HOME": str(folder), "MLFLOW_DISABLE_TELEMETRY": "true"}
    env["PATH"] = f"{program.parent}{os.pathsep}{env['PATH']}"
    with served(command, folder, port, env) as address:
        yield Mlflow(address, database)
