"""A thousand runs beside each other: `python -m benchmarks.compare_runs [--runs N]`.

Starts its own Postgres in a temporary folder with 1,000 runs: the whole config of the policy recipe, 50 metrics each, 250 families of four
seeds, and 200 points of one metric. Then it asks the API, in this process, for the comparison and for the curves of one metric as the page
does, and prints how long each took and how large it is.
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
POINTS_OF_ONE = """
INSERT INTO experiments_metricpoint (run_id, key, step, value, time)
SELECT run.id, 'eval/score0', at, 1 - exp(-at / 60.0) + (run.id + at) %% 7 / 50.0, now() + at * interval '9 seconds'
FROM experiments_run AS run, generate_series(1, %(points)s) AS at
"""


def main() -> None:
    parser = argparse.ArgumentParser(prog="python -m benchmarks.compare_runs", description=__doc__)
    parser.add_argument("--runs", type=int, default=RUNS)
    parser.add_argument("--rounds", type=int, default=5)
    options = parser.parse_args()
    with database():
        client, _ = filled(options.runs, METRICS)
        _points()
        answers = {
            "comparison": _asked(client, "compare", {"q": "is:any"}, options.rounds),
            "curves of a metric": _asked(client, "curves", {"q": "is:any", "key": "eval/score0"}, options.rounds),
        }
    print(describe())
    print(f"{options.runs:,} runs x {METRICS} metrics\n{'':24}{'median s':>10}{'worst s':>10}{'kB':>10}")
    for label, (took, size) in answers.items():
        print(f"{label:24}{statistics.median(took):10.2f}{max(took):10.2f}{size / 1000:10,.0f}")
    took, size = answers["comparison"]
    ours = {"ours": round(statistics.median(took), 2), "peer": None, "unit": "s", "ratio": None}
    print(json.dumps({"compare_runs": ours, "compare_runs_size": ours | {"ours": size, "unit": "bytes"}}))


def _points() -> None:
    from django.db import connection

    with connection.cursor() as cursor:
        cursor.execute(POINTS_OF_ONE, {"points": POINTS})
        cursor.execute("ANALYZE experiments_metricpoint")


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
