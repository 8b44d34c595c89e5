"""Our side: a Postgres, a Redis, a web server and a worker, started as `manage.py up` starts them, in a temporary folder."""

import json
import os
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import httpx
import numpy as np

from benchmarks.ingest import services
from benchmarks.live.sizes import START_MS, Sizes, name, numbers, timed, value

FILL = """
INSERT INTO experiments_metricpoint (run_id, key, step, time, value)
SELECT %(run)s, 'group' || key %% 4 || '/metric' || key, step, %(start)s::timestamptz + step * interval '1 s',
    sin(step * (key + 1) / 300.0) + (step * 2654435761 %% 1000) / 5000.0
FROM generate_series(0, %(keys)s - 1) AS key, generate_series(0, %(points)s - 1) AS step
"""


class Ours:
    steps_at_once = 50

    def __init__(self, address: str) -> None:
        from tests.team import browser, make_team
        from webapp.accounts.models import Membership
        from webapp.accounts.tokens.services import create_token

        make_team()
        self.owner = Membership.objects.get(user__email="ada@example.org")
        self.session = browser(self.owner).cookies["sessionid"].value
        token = create_token(self.owner, "bench")[1]
        self.address = address
        self.http = httpx.Client(base_url=address, headers={"Authorization": f"Bearer {token}"}, timeout=600)
        self._experiment = self._made()
        self._senders: dict[int, Sender] = {}
        self._charts, self._runs = 0, [0]
        self._steps = numbers(10**7)

    def _made(self) -> Any:
        from webapp.datasets.models import Dataset, DatasetVersion
        from webapp.experiments.models import Experiment
        from webapp.inference.models import RegisteredModel

        space = self.owner.workspace
        dataset = Dataset.objects.create(workspace=space, name="bench")
        self._version = DatasetVersion.objects.create(dataset=dataset, number=1, state="frozen", digest="0" * 64)
        self._model = RegisteredModel.objects.create(workspace=space, name="bench", source="local", path="/bench")
        return Experiment.objects.create(workspace=space, name="bench")

    def run(self, seed: int = 0, state: str = "running") -> "Sender":
        """A new run, written directly: launching is not measured."""
        from webapp.experiments import table_facts
        from webapp.experiments.lifecycle import tokens
        from webapp.experiments.models import Run

        number = self._experiment.runs.count() + 1
        config = {"seed": seed, "optim": {"lr": 1e-5 * (1 + number % 5)}}
        given = {"dataset_version": self._version, "model": self._model, "recipe": "policy", "config": config}
        run = Run.objects.create(experiment=self._experiment, number=number, state=state, steps_total=10**6, **given)
        table_facts.keep_config(self._experiment.workspace_id, run)
        Run.objects.filter(pk=run.pk).update(token_digest=tokens.digest(run), family=run.family)
        return Sender(self.address, run.pk, tokens.run_token(run))

    def send(self, sender: int, first: int, steps: int, keys: int) -> None:
        if sender not in self._senders:
            self._senders[sender] = self.run()
        self._senders[sender].send(range(first, first + steps), keys)

    def fill_charts(self, charts: int, points: int) -> None:
        self._charter = self.run()
        self._charts = self._charter.pk
        self.fill(self._charts, charts, points)

    def charts(self, charts: int) -> float:
        step = next(self._steps)
        self._charter.send(range(step, step + 1), charts)
        return timed(lambda: self.get(f"runs/{self._charts}/curves", max_points=1000))

    def fill_runs(self, runs: int, points: int) -> None:
        self._compared = [self.run(seed) for seed in range(runs)]
        for sender in self._compared:
            self.fill(sender.pk, 1, points)

    def compare(self, runs: int) -> float:
        step = next(self._steps)
        for sender in self._compared:
            sender.send(range(step, step + 1), 1)
        ids = ",".join(str(sender.pk) for sender in self._compared)

        def read() -> None:
            self.get("runs/table/compare", ids=ids)
            self.get("runs/table/curves", ids=ids, key=name(0))

        return timed(read)

    def get(self, path: str, **query: Any) -> bytes:
        answer = self.http.get(f"/api/v1/{path}", params=query)
        assert answer.status_code == 200, answer.text[:500]  # noqa: S101
        return answer.content

    def fill(self, run: int, keys: int, points: int) -> None:
        """Write points as ingest writes them, condensed as a worker condenses them."""
        from django.db import connection

        from webapp.experiments.metrics import condensing

        given: dict[str, Any] = {
            "run": run,
            "keys": keys,
            "points": points,
            "start": datetime.fromtimestamp(START_MS / 1000, UTC),
        }
        with connection.cursor() as cursor:
            cursor.execute(FILL, given)
        condensing.condense(run)

    def fill_levels(self, run: int, sizes: Sizes) -> None:
        """Write a run so long that its points would fill the disk: levels as a worker makes them of all points, and only the last
        points, which are in no level yet. A page reads nothing else.
        """
        from django.db import connection

        from webapp.experiments.metrics import condensing, levels, stored_levels

        points = np.zeros(sizes.series_points, levels.POINT)
        points["step"] = np.arange(sizes.series_points)
        points["at"] = (START_MS - 1000 * levels.EPOCH_S) * 1000 + points["step"].astype(np.int64) * 1_000_000
        whole = sizes.series_points // levels.ROW * levels.ROW
        with connection.cursor() as cursor:
            for key in range(sizes.series):
                points["value"] = np.sin(points["step"] * (key + 1) / 300)
                condensing.write(run, [name(key)], [stored_levels.Covered()], {0: levels.whole_rows(points)})
                rest: dict[str, Any] = {"run": run, "key": name(key), "from": whole, "to": sizes.series_points - 1}
                cursor.execute(
                    "INSERT INTO experiments_metricpoint (run_id, key, step, time, value)"
                    " SELECT %(run)s, %(key)s, step, now(), sin(step) FROM generate_series(%(from)s, %(to)s) AS step",
                    rest,
                )
            cursor.execute("VACUUM ANALYZE experiments_metricpoint")
            cursor.execute("VACUUM ANALYZE experiments_metriclevel")


class Sender:
    """A training process that only sends."""

    def __init__(self, address: str, pk: int, token: str) -> None:
        self.pk, self._seq = pk, 0
        self._http = httpx.Client(base_url=address, headers={"Authorization": f"Bearer {token}"}, timeout=600)

    def send(self, steps: range, keys: int, shown: str = "") -> None:
        """Send one batch. `shown` names a metric whose value is the step."""
        events = []
        for step in steps:
            self._seq += 1
            values = {name(key): value(key, step) for key in range(keys)} | ({shown: float(step)} if shown else {})
            data = {"kind": "metrics", "values": values}
            events.append({"seq": self._seq, "time": datetime.now(UTC).isoformat(), "step": step, "data": data})
        body = json.dumps({"attempt": 1, "events": events})
        answer = self._http.post(f"/api/v1/ingest/runs/{self.pk}/events", content=body)
        assert answer.is_success and answer.json()["acked"] == self._seq, answer.text[:500]  # noqa: S101


@contextmanager
def started(folder: Path) -> Iterator[Ours]:
    with services(folder) as address:
        command = [sys.executable, "-m", "celery", "-A", "webapp", "worker", "--pool", "threads", "--concurrency", "8"]
        command += ["--loglevel", "WARNING", "--without-gossip", "--without-mingle"]
        with (folder / "celery.log").open("w") as log:
            worker = subprocess.Popen(command, stdout=log, stderr=subprocess.STDOUT)
        try:
            import django

            os.environ["DJANGO_ALLOW_ASYNC_UNSAFE"] = "true"  # Playwright runs an event loop in this thread
            django.setup()
            yield Ours(address)
        finally:
            worker.terminate()
            worker.wait(60)
