"""A thousand runs beside each other, and twenty long ones: `python -m benchmarks.compare_runs [--runs N] [--long-points N]`.

Starts its own Postgres in a temporary folder with 1,000 runs: the whole config of the policy recipe, 50 metrics each, 250 families of four
seeds, and 200 points of one metric. The newest 20 have a million points of another metric, which are condensed as a worker does it. Then it
asks the API, in this process, for the comparison and for the curves of each of the two metrics as the page does, and prints how long each
took and how large it is.
"""

import argparse
import json
import statistics
import time
from typing import Any

from benchmarks.machine import describe
from benchmarks.runs_table import database, filled

RUNS = 1000
METRICS = 50
POINTS = 200
LONG_RUNS = 20
LONG_POINTS = 1_000_000
LONG_KEY = "train/loss"
POINTS_OF_ONE = """
INSERT INTO experiments_metricpoint (run_id, key, step, value, time)
SELECT run.id, 'eval/score0', at, 1 - exp(-at / 60.0) + (run.id + at) %% 7 / 50.0, now() + at * interval '9 seconds'
FROM experiments_run AS run, generate_series(1, %(points)s) AS at
"""
# as stretches of 90 points, as ingest writes them
POINTS_OF_LONG = """
INSERT INTO experiments_metricstretch (run_id, key, first_step, last_step, steps, numbers, times)
SELECT %(run)s, %(key)s, min(step), max(step), array_agg(step ORDER BY step), array_agg(value ORDER BY step), array_agg(time ORDER BY step)
FROM (
    SELECT step, 2 * exp(-step / 200000.0) + (step::bigint * 2654435761 %% 1000) / 5000.0 AS value, now() + step * interval '1 s' AS time
    FROM generate_series(1, %(points)s) AS step
) AS point
GROUP BY (step - 1) / 90
"""


def main() -> None:
    parser = argparse.ArgumentParser(prog="python -m benchmarks.compare_runs", description=__doc__)
    parser.add_argument("--runs", type=int, default=RUNS)
    parser.add_argument("--long-points", type=int, default=LONG_POINTS, help=f"of each of {LONG_RUNS} long runs")
    parser.add_argument("--rounds", type=int, default=5)
    options = parser.parse_args()
    with database():
        client, _ = filled(options.runs, METRICS)
        _points()
        ids = _long_runs(options.long_points)
        long = {"ids": ",".join(map(str, ids)), "key": LONG_KEY}
        answers = {
            "comparison": _asked(client, "compare", {"q": "is:any"}, options.rounds),
            "curves of a metric": _asked(client, "curves", {"q": "is:any", "key": "eval/score0"}, options.rounds),
            "curves of long runs": _asked(client, "curves", long, options.rounds),
        }
    print(describe())
    print(f"{options.runs:,} runs x {METRICS} metrics; {len(ids)} long runs x {options.long_points:,} points")
    print(f"{'':24}{'median s':>10}{'worst s':>10}{'kB':>10}")
    for label, (took, size) in answers.items():
        print(f"{label:24}{statistics.median(took):10.2f}{max(took):10.2f}{size / 1000:10,.0f}")
    took, size = answers["comparison"]
    ours = {"ours": round(statistics.median(took), 2), "peer": None, "unit": "s", "ratio": None}
    long_ours = ours | {"ours": round(statistics.median(answers["curves of long runs"][0]), 2)}
    found = {"compare_runs": ours, "compare_runs_size": ours | {"ours": size, "unit": "bytes"}}
    print(json.dumps(found | {"compare_long_runs": long_ours}))


def _points() -> None:
    from django.db import connection

    with connection.cursor() as cursor:
        cursor.execute(POINTS_OF_ONE, {"points": POINTS})
        cursor.execute("ANALYZE experiments_metricpoint")


def _long_runs(points: int) -> list[int]:
    from django.db import connection

    from webapp.experiments.metrics import condensing
    from webapp.experiments.models import Run

    of_large = Run.objects.filter(experiment__workspace__memberships__user__email="large@example.org").order_by("-pk")
    ids = list(of_large.values_list("pk", flat=True)[:LONG_RUNS])
    for run_id in ids:
        with connection.cursor() as cursor:
            cursor.execute(POINTS_OF_LONG, {"run": run_id, "key": LONG_KEY, "points": points})
        condensing.condense(run_id)
    with connection.cursor() as cursor:
        cursor.execute("ANALYZE experiments_metricstretch, experiments_metriclevel")
    return ids


def _asked(client: Any, path: str, query: dict[str, str], rounds: int) -> tuple[list[float], int]:
    took, size = [], 0
    for _ in range(rounds):
        started = time.perf_counter()
        answer = client.get(f"/api/v1/runs/table/{path}", query)
        took.append(time.perf_counter() - started)
        assert answer.status_code == 200, answer.content  # noqa: S101
        size = len(answer.content)
    return took, size


if __name__ == "__main__":
    main()
