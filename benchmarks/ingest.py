"""Events ingested per second: `python -m benchmarks.ingest [--posts N] [--stored N]`.

Starts its own Postgres, Redis and web server, as `manage.py up` starts them, in a temporary folder and posts to
them over HTTP as training processes do: batches of 200 events, each batch after the acknowledgement of the one before. A
step is what the policy recipe sends: one event with 24 metrics and two histograms, one of progress, one log line. Client,
server, database and broker share the machine's cores. CPU seconds are those of web server and database, apart and together: they
show what a point costs, however busy the machine is with other work. `--stored` puts that many million points of other runs into
the tables first, to show whether a point costs more in large tables.
"""

import argparse
import contextlib
import json
import os
import signal
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from functools import partial
from pathlib import Path
from typing import Any

import httpx
import psutil

from benchmarks.machine import describe
from webapp.localstack.ports import free_port
from webapp.localstack.postgres import Postgres
from webapp.localstack.processes import Child
from webapp.localstack.redis import Redis

EVENTS_PER_POST = 200
POINTS_PER_POST = EVENTS_PER_POST / 3 * 26
POSTS = 60
SETTINGS = ((1, "one run"), (4, "four runs at once"))
TIME = "2026-11-21T12:00:00Z"
# of the points that are stored before: runs, their metrics, points of a row
OLD_RUNS, OLD_KEYS, OLD_STRETCH = 100, 24, 90
FILL = """
INSERT INTO experiments_metricstretch (run_id, key, first_step, last_step, steps, numbers, times)
SELECT run, 'group' || key %% 4 || '/metric' || key, first, first + %(points)s - 1, ARRAY(SELECT generate_series(first, first + %(points)s - 1)),
    ARRAY(SELECT sin(key * step) FROM generate_series(first, first + %(points)s - 1) AS step),
    ARRAY(SELECT now() + step * interval '1 s' FROM generate_series(first, first + %(points)s - 1) AS step)
FROM generate_series(0, %(stretches)s - 1) AS stretch CROSS JOIN LATERAL (SELECT stretch * %(points)s AS first) AS starts
    CROSS JOIN unnest(%(runs)s::bigint[]) AS run CROSS JOIN generate_series(0, %(keys)s - 1) AS key
"""


def main() -> None:
    parser = argparse.ArgumentParser(prog="python -m benchmarks.ingest", description=__doc__)
    parser.add_argument("--posts", type=int, default=POSTS, help="batches that each run sends")
    parser.add_argument("--stored", type=int, default=0, help="million points that are stored before")
    options = parser.parse_args()
    load = os.getloadavg()[0]
    with tempfile.TemporaryDirectory(prefix="ts-bench-") as folder, services(Path(folder)) as address:
        stored = _fill(options.stored) if options.stored else "nothing"
        rows = [
            (label, *_costed(partial(measure, address, runs, options.posts), runs * options.posts))
            for runs, label in SETTINGS
        ]
    print(describe())
    print(f"load when it began: {load:.1f}; stored before: {stored}")
    heads = ("events/s", "points/s", "p50 ms/post", "p95 ms/post", "CPU s/M points", "of web", "of Postgres")
    print(f"{'':20}" + "".join(f"{head:>16}" for head in heads))
    for label, events, points, p50, p95, web, postgres in rows:
        costs = (web + postgres, web, postgres)
        print(
            f"{label:20}{events:16,.0f}{points:16,.0f}{p50:16.1f}{p95:16.1f}"
            + "".join(f"{each:16.2f}" for each in costs)
        )
    best = max(row[1] for row in rows)
    print(json.dumps({"ingest": {"ours": round(best), "peer": None, "unit": "events/s", "ratio": None}}))


def _costed(
    work: Callable[[], tuple[float, float, float, float]], posts: int
) -> tuple[float, float, float, float, float, float]:
    """The result of `work`, and the CPU seconds of a million of its points: of the web server and of Postgres."""
    before = spent()
    found = work()
    after = spent()
    web, postgres = (after.get(part, 0.0) - before.get(part, 0.0) for part in ("web", "postgres"))
    points = posts * POINTS_PER_POST
    return *found, web * 1e6 / points, postgres * 1e6 / points


def spent() -> dict[str, float]:
    """CPU seconds of the processes that this one has started, by their kind: `celery`, `postgres`, `redis`, `web`."""
    found: dict[str, float] = {}
    for process in psutil.Process().children(recursive=True):
        with contextlib.suppress(psutil.Error):
            name, words = process.name(), " ".join(process.cmdline())
            part = (
                "celery" if "celery" in words else next((each for each in ("postgres", "redis") if each in name), "web")
            )
            times = process.cpu_times()
            ended = times.children_user + times.children_system  # of those that it has started and waited for
            found[part] = found.get(part, 0.0) + times.user + times.system + ended
    return found


@contextlib.contextmanager
def services(var: Path) -> Iterator[str]:
    """The address of a new web server; everything it needs is stopped and removed at the end, also if the end comes by SIGTERM, as from
    `timeout`: servers left behind would keep the caller waiting for the end of their output.
    """
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(143))
    var.chmod(0o755)  # as root, Postgres runs as someone else and must reach its folder
    postgres, redis, port = Postgres(var), Redis(var), free_port(0)
    postgres.start()
    redis.prepare()
    children = [Child(redis.command(), var / "redis.log")]
    os.environ.update(
        DJANGO_SETTINGS_MODULE="webapp.settings",
        TOUCHSTONE_VAR=str(var),
        DATABASE_URL=postgres.url(),
        REDIS_URL=f"unix://{redis.socket}",
        LOG_LEVEL="WARNING",
    )
    try:
        subprocess.run([sys.executable, "manage.py", "migrate", "-v0"], check=True)
        from webapp.localstack.stack import web_server  # needs the settings, which need the variables above

        web = subprocess.Popen([sys.executable, *web_server("127.0.0.1", port)])
        try:
            yield _when_up(f"http://127.0.0.1:{port}")
        finally:
            web.terminate()
            web.wait(20)
    finally:
        for child in children:
            child.ask_to_stop()
            child.process.wait(20)
        postgres.stop()


def _when_up(address: str) -> str:
    deadline = time.monotonic() + 180  # a machine with other work may take a while
    while time.monotonic() < deadline:
        with contextlib.suppress(httpx.HTTPError):
            if httpx.get(f"{address}/healthz", timeout=2).status_code == 200:
                return address
        time.sleep(0.1)
    raise RuntimeError("the web process did not start")


def measure(address: str, count: int, posts: int) -> tuple[float, float, float, float]:
    """(events/s, points/s, median, 95th percentile in ms) of `count` runs that post at the same time."""
    bodies = [batch(1 + i * EVENTS_PER_POST) for i in range(posts)]
    runs = new_runs(count)

    def post(run: tuple[int, str]) -> list[float]:
        run_id, token = run
        took = []
        with httpx.Client(base_url=address, headers={"Authorization": f"Bearer {token}"}, timeout=60) as client:
            for i, body in enumerate(bodies, 1):
                started = time.perf_counter()
                reply = client.post(f"/api/v1/ingest/runs/{run_id}/events", content=body)
                took.append(time.perf_counter() - started)
                assert reply.json()["acked"] == i * EVENTS_PER_POST, reply.text  # noqa: S101
        return took

    started = time.perf_counter()
    with ThreadPoolExecutor(count) as pool:
        took = sorted(seconds * 1000 for each in pool.map(post, runs) for seconds in each)
    elapsed = time.perf_counter() - started
    events = count * posts * EVENTS_PER_POST
    return (
        events / elapsed,
        count * posts * POINTS_PER_POST / elapsed,
        took[len(took) // 2],
        took[len(took) * 95 // 100],
    )


def _fill(millions: int) -> str:
    """Fills the table of points with other runs; how much it holds now."""
    runs = [pk for pk, _ in new_runs(OLD_RUNS)]
    from django.db import connection

    stretches = max(1, round(millions * 1e6 / (OLD_RUNS * OLD_KEYS * OLD_STRETCH)))
    given: dict[str, Any] = {"runs": runs, "keys": OLD_KEYS, "points": OLD_STRETCH, "stretches": stretches}
    with connection.cursor() as cursor:
        cursor.execute(FILL, given)
        cursor.execute("VACUUM ANALYZE experiments_metricstretch")
        cursor.execute(
            "SELECT pg_table_size('experiments_metricstretch'), pg_indexes_size('experiments_metricstretch')"
        )
        table, indexes = (size / 2**30 for size in cursor.fetchone())
    points = stretches * OLD_RUNS * OLD_KEYS * OLD_STRETCH
    return f"{points:,} points, table {table:.2f} GiB, indexes {indexes:.2f} GiB"


def batch(first: int) -> bytes:
    """Events `first`, `first` + 1, ...: every third one metrics, progress, log."""
    values = {f"group{i % 4}/metric{i}": 0.123456789 * (i + 1) for i in range(24)}
    histogram = {"edges": [i / 20 for i in range(21)], "counts": list(range(20))}
    kinds = (
        {"kind": "metrics", "values": values, "histograms": {"ratio/raw": histogram, "ratio/masked": histogram}},
        {"kind": "progress", "phase": "rollouts", "done": 3, "total": 8, "eta_s": 12.5},
        {"kind": "log", "message": "step took 8.31 s: rollout 5.02 s, update 3.11 s"},
    )
    events = [
        {"seq": seq, "time": TIME, "step": seq // 3, "data": kinds[seq % 3]}
        for seq in range(first, first + EVENTS_PER_POST)
    ]
    return json.dumps({"attempt": 1, "events": events}).encode()


def new_runs(count: int) -> list[tuple[int, str]]:
    """(id, token) of new runs, written directly: launching is not measured."""
    import django

    django.setup()
    from webapp.accounts.models import Workspace
    from webapp.datasets.models import Dataset, DatasetVersion
    from webapp.experiments.lifecycle import tokens
    from webapp.experiments.models import Experiment, Run
    from webapp.inference.models import RegisteredModel

    space = Workspace.objects.create(name="bench", slug=f"bench-{count}")
    dataset = Dataset.objects.create(workspace=space, name="bench")
    experiment = Experiment.objects.create(workspace=space, name="bench")
    version = DatasetVersion.objects.create(dataset=dataset, number=1, state="frozen", digest="0" * 64)
    model = RegisteredModel.objects.create(workspace=space, name="bench", source="local", path="/bench")
    made = [
        Run.objects.create(
            experiment=experiment,
            number=i + 1,
            recipe="policy",
            config={},
            dataset_version=version,
            model=model,
            state="running",
        )
        for i in range(count)
    ]
    for run in made:
        Run.objects.filter(id=run.id).update(token_digest=tokens.digest(run))
    return [(run.id, tokens.run_token(run)) for run in made]


if __name__ == "__main__":
    main()
