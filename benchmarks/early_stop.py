"""Measures the time that upkeep needs for the metric of a run's early stop: `python -m benchmarks.early_stop [--points N]`.

Starts its own Postgres in a temporary folder with one run, whose metric has N points. Three looks are measured: the first, which reads all points, and the longest time for which it holds the lock of the run; one after ten more points, as
upkeep looks at a run every ten seconds; and one at which nothing is new. For comparison it reads all points by one statement, as every look would without the count that is kept.
"""

import argparse
import json
import statistics
import time
from collections.abc import Callable
from datetime import timedelta
from typing import Any

from benchmarks.machine import describe
from benchmarks.runs_table import database

KEY = "reward/mean"
ALL = """
SELECT max(value), count(*) FROM (
    SELECT value, row_number() OVER (ORDER BY step) FROM experiments_point WHERE run_id = %s AND key = %s AND value IS NOT NULL
) AS found
"""


def main() -> None:
    parser = argparse.ArgumentParser(prog="python -m benchmarks.early_stop", description=__doc__)
    parser.add_argument("--points", type=int, default=1_000_000)
    parser.add_argument("--rounds", type=int, default=20)
    options = parser.parse_args()
    with database():
        from django.db import connection, transaction

        from webapp.experiments.metrics import patience, writing
        from webapp.experiments.models import MetricProgress, Run

        run = _run()
        writing.steps(run.pk, _told(range(options.points)))
        with connection.cursor() as cursor:
            cursor.execute("ANALYZE")

        held: list[float] = []

        def piece() -> bool:
            with transaction.atomic():
                Run.objects.select_for_update(no_key=True).only("pk").get(pk=run.pk)
                began = time.perf_counter()
                more = patience.waited(run.pk, KEY, True, 0.001) is None
            held.append(1000 * (time.perf_counter() - began))
            return more

        def look() -> None:
            while piece():
                pass

        def everything() -> None:
            with connection.cursor() as cursor:
                cursor.execute(ALL, [run.pk, KEY])
                cursor.fetchall()

        def again() -> None:
            MetricProgress.objects.all().delete()

        ends = iter(range(options.points, options.points + 10 * options.rounds, 10))

        def ten_more() -> None:
            start = next(ends)
            writing.steps(run.pk, _told(range(start, start + 10)))

        print(describe())
        print(f"{options.points:,} points\n{'':26}{'median ms':>11}{'worst ms':>10}")
        few = max(1, options.rounds // 5)
        _line("reads all, by one statement", _took(everything, few))
        first = _line("first look", _took(look, few, again))
        _line("  its lock, each time", held)
        later = _line("after ten more points", _took(look, options.rounds, ten_more))
        _line("nothing new", _took(look, options.rounds))
    told = {"ours": round(later, 2), "peer": round(first, 2), "unit": "ms", "ratio": round(later / first, 4)}
    print(json.dumps({"early stop": told}))


def _took(work: Callable[[], None], rounds: int, before: Callable[[], None] = lambda: None) -> list[float]:
    """Milliseconds of each round, without `before`."""
    found = []
    for _ in range(rounds):
        before()
        began = time.perf_counter()
        work()
        found.append(1000 * (time.perf_counter() - began))
    return found


def _line(label: str, took: list[float]) -> float:
    print(f"{label:26}{statistics.median(took):11.2f}{max(took):10.2f}")
    return statistics.median(took)


def _told(steps: range) -> Any:
    """Values that get better more and more slowly, with noise."""
    from django.utils import timezone

    from webapp.experiments.bulk import StepMetrics

    now = timezone.now()
    return [
        StepMetrics(
            step=step,
            time=now + timedelta(seconds=step),
            values={KEY: 1 - 1 / (1 + step / 1000) + (step * 7919 % 101) / 5000},
            histograms={},
        )
        for step in steps
    ]


def _run() -> Any:
    from webapp.accounts.models import User
    from webapp.accounts.workspaces.services import create_workspace
    from webapp.experiments.models import LOGGED, Experiment, Run

    workspace = create_workspace("Lab", User.objects.create_user("ada@example.org")).workspace
    experiment = Experiment.objects.create(workspace=workspace, name="Long")
    return Run.objects.create(experiment=experiment, number=1, recipe=LOGGED, config={}, state="running")


if __name__ == "__main__":
    main()
