"""A run of a million events: `python -m benchmarks.long_run [--events N]`.

Starts its own Postgres, Redis and web server, as `benchmarks.ingest` does, and sends the events of one run: metrics, progress and log lines, in
batches of 200, every fiftieth batch twice. It prints for each tenth of them how fast they were stored and how much memory the web server
has, and counts the points and lines that were stored: none may be missing or double. After each tenth it condenses the points as a worker
does, because the services do not include one. Then it reads the run as a person and a script do. The time of the processors for a read, of web
server and database together, hardly depends on what else runs on the machine.
"""

import argparse
import json
import statistics
import tempfile
import time
from collections.abc import Callable
from functools import partial
from itertools import pairwise
from pathlib import Path

import httpx
import psutil

from benchmarks.ingest import EVENTS_PER_POST, batch, new_runs, services, spent
from benchmarks.machine import describe

TWICE = 50  # every batch of this many is sent twice
PARTS = 10
ROUNDS = 5
KEYS = 24
ALLOWED_MS = 120_000


def main() -> None:
    parser = argparse.ArgumentParser(prog="python -m benchmarks.long_run", description=__doc__)
    parser.add_argument("--events", type=int, default=1_000_000)
    options = parser.parse_args()
    posts = max(PARTS, options.events // EVENTS_PER_POST)
    with tempfile.TemporaryDirectory(prefix="ts-bench-") as folder, services(Path(folder)) as address:
        [(run_id, token)] = new_runs(1)
        parts = send(address, run_id, token, posts)
        lost, double = missed(run_id, posts)
        reads = read(address, run_id)
    print(describe())
    print(f"{posts * EVENTS_PER_POST:,} events, every {TWICE}th batch of {EVENTS_PER_POST} twice\n")
    print(f"{'events until':>14}{'events/s':>12}{'p95 ms/post':>14}{'web server MiB':>17}")
    for until, rate, p95, memory in parts:
        print(f"{until:14,}{rate:12,.0f}{p95:14.1f}{memory:17,.0f}")
    print(
        f"\nmissing points and lines: {lost}; double: {double}\n\n{'read, with the run stored':42}{'median ms':>12}{'processor ms':>14}{'kB':>8}"
    )
    for label, (took, used, size) in reads.items():
        print(f"{label:42}{took:12.0f}{used:14.0f}{size / 1000:8,.0f}")
    found = {"long_run_missing": (lost, "rows"), "long_run_double": (double, "rows")}
    found["long_run_page"] = (round(reads["page of the run"][0]), "ms")
    print(
        json.dumps({name: {"ours": n, "peer": None, "unit": unit, "ratio": None} for name, (n, unit) in found.items()})
    )


def send(address: str, run_id: int, token: str, posts: int) -> list[tuple[int, float, float, float]]:
    """For each tenth: (events until its end, events/s, 95th percentile of a post in ms, memory of the web server in MiB)."""
    from webapp.experiments.metrics import condensing

    places = [posts * part // PARTS for part in range(PARTS + 1)]
    found = []
    with httpx.Client(
        base_url=address, headers={"Authorization": f"Bearer {token}"}, timeout=ALLOWED_MS / 1000
    ) as client:
        for begin, end in pairwise(places):
            took, started = [], time.perf_counter()
            for place in range(begin, end):
                body = batch(1 + place * EVENTS_PER_POST)
                for _ in range(1 + (place % TWICE == 0)):
                    before = time.perf_counter()
                    reply = client.post(f"/api/v1/ingest/runs/{run_id}/events", content=body)
                    took.append((time.perf_counter() - before) * 1000)
                    if reply.json().get("acked") != (place + 1) * EVENTS_PER_POST:
                        raise SystemExit(f"long_run: {reply.text}")
            rate = (end - begin) * EVENTS_PER_POST / (time.perf_counter() - started)
            found.append((end * EVENTS_PER_POST, rate, sorted(took)[len(took) * 95 // 100], _memory()))
            condensing.condense(run_id)
    return found


def _memory() -> float:
    """MiB of the web server and its workers, without what they share counted twice."""
    ours = psutil.Process().children(recursive=True)
    [server] = [each for each in ours if "uvicorn" in each.cmdline()]
    uss: list[int] = [each.memory_full_info().uss for each in [server, *server.children(recursive=True)]]
    return sum(uss) / 2**20


def missed(run_id: int, posts: int) -> tuple[int, int]:
    """The number of points of metrics and lines of the log are missing, and how many are double."""
    from webapp.experiments.metrics import points
    from webapp.experiments.models import LogLine

    last = posts * EVENTS_PER_POST
    steps = {seq // 3 for seq in range(1, last + 1) if seq % 3 == 0}
    lines = sum(seq % 3 == 2 for seq in range(1, last + 1))
    stored = LogLine.objects.filter(run_id=run_id).count()
    lost, double = max(0, lines - stored), max(0, stored - lines)
    stored_steps: dict[str, list[int]] = {f"group{i % 4}/metric{i}": [] for i in range(KEYS)}
    for key, step, _ in points.values(run_id, list(stored_steps)):
        stored_steps[key].append(step)
    for found in stored_steps.values():
        lost += len(steps - set(found))
        double += len(found) - len(set(found))
    return lost, double


def read(address: str, run_id: int) -> dict[str, tuple[float, float, int]]:
    """{what: (median ms, processor ms, bytes)}, over HTTP."""
    from tests.team import browser
    from webapp.accounts.models import Membership, Role, User
    from webapp.experiments.models import Run

    workspace = Run.objects.get(pk=run_id).experiment.workspace
    user = User.objects.create_user("reader@bench.example", name="Reader")
    member = Membership.objects.create(user=user, workspace=workspace, role=Role.RESEARCHER)
    session = {"sessionid": browser(member).cookies["sessionid"].value}
    api = f"/api/v1/runs/{run_id}"
    asked = {
        "page of the run": f"/runs/{run_id}",
        "its 24 curves": f"{api}/curves",
        "one metric, a page of points": f"{api}/metrics?key=group0/metric0",
        "newest lines of the log": f"{api}/log",
        "page of the log": f"/runs/{run_id}/log",
        "table of runs": "/experiments",
    }
    with httpx.Client(base_url=address, timeout=ALLOWED_MS / 1000, cookies=session) as client:
        return {label: _timed(partial(client.get, path)) for label, path in asked.items()}


def _timed(get: Callable[[], httpx.Response]) -> tuple[float, float, int]:
    get().raise_for_status()  # the first page of a kind compiles templates
    took, size, before = [], 0, sum(spent().values())
    for _ in range(ROUNDS):
        started = time.perf_counter()
        reply = get()
        took.append((time.perf_counter() - started) * 1000)
        reply.raise_for_status()
        size = len(reply.content)
    return statistics.median(took), 1000 * (sum(spent().values()) - before) / ROUNDS, size


if __name__ == "__main__":
    main()
