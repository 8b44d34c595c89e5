"""The table of costs among many attempts: `python -m benchmarks.costs [--spans N]`.

Starts its own Postgres in a temporary folder with N attempts of two years, of which one in twenty crosses the end of a month, and a counter of
calls for every fifth. Then it makes the table by month, project, piece of work and person, for all time and for one month, in this process, and
prints how long each took.
"""

import argparse
import json
import statistics
import time
from datetime import UTC, date, datetime
from typing import Any

from benchmarks.machine import describe
from benchmarks.runs_table import database

SPANS = """
INSERT INTO usage_workspan (workspace_id, kind, work, attempt, place, person_id, began, ended, gpus, told, measured)
SELECT %(workspace)s, CASE n %% 4 WHEN 0 THEN 'job' ELSE 'run' END, n / 3, n %% 3 + 1, n %% 50, %(person)s, at, at + interval '36 hours',
    CASE n %% 5 WHEN 0 THEN NULL ELSE n %% 8 END, true, true
FROM (SELECT n, timestamptz '2024-11-01' + n * interval '729 days' / %(spans)s AS at FROM generate_series(1, %(spans)s) AS n) AS each
"""
USES = """
INSERT INTO usage_monthlyuse (
    workspace_id, month, kind, work, place, person_id, endpoint_id, calls, prompt_tokens, completion_tokens, other_tokens, money, untold,
    unpriced
)
SELECT %(workspace)s, date_trunc('month', timestamp '2024-11-01' + n * interval '729 days' / %(spans)s), 'run', n, n %% 50, %(person)s, NULL,
    9, 900, 90, 0, 0.25, 0, n %% 2
FROM generate_series(1, %(spans)s, 5) AS n
"""


def main() -> None:
    parser = argparse.ArgumentParser(prog="python -m benchmarks.costs", description=__doc__)
    parser.add_argument("--spans", type=int, default=100_000)
    parser.add_argument("--rounds", type=int, default=10)
    options = parser.parse_args()
    with database():
        membership = _filled(options.spans)
        from webapp.costs import queries

        now, month = datetime(2026, 11, 15, tzinfo=UTC), date(2026, 3, 1)
        print(describe())
        print(f"{options.spans:,} attempts\n{'':24}{'lines':>8}{'median ms':>11}{'worst ms':>10}")
        worst = 0.0
        for by in queries.KEYS:
            for of, label in ((None, by), (month, f"{by}, of one month")):
                took = []
                for _ in range(options.rounds):
                    began = time.perf_counter()
                    found = len(queries.table(membership, by, of, "hours", now).lines)
                    took.append(1000 * (time.perf_counter() - began))
                worst = max(worst, statistics.median(took))
                print(f"{label:24}{found:8,}{statistics.median(took):11.1f}{max(took):10.1f}")
    print(json.dumps({"costs": {"ours": round(worst, 1), "peer": None, "unit": "ms", "ratio": None}}))


def _filled(spans: int) -> Any:
    from django.db import connection

    from webapp.accounts.models import User
    from webapp.accounts.workspaces.services import create_workspace

    membership = create_workspace("Lab", User.objects.create_user("ada@example.org"))
    asked = {"workspace": membership.workspace_id, "person": membership.user_id, "spans": spans}
    with connection.cursor() as cursor:
        for statement in (SPANS, USES):
            cursor.execute(statement, asked)
        cursor.execute("ANALYZE")
    return membership


if __name__ == "__main__":
    main()
