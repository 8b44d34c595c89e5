"""The short form of `make chaos`. People, an import and a judge work while the web server, worker, beat, Redis, Postgres, Ray and the judge
are killed, and nothing is lost. It has no runs, because other tests of the stack kill those.
"""

from pathlib import Path

import pytest

from benchmarks.chaos.storm import Storm, StormPlan, table
from tests.stack import Stack

pytestmark = [pytest.mark.stack, pytest.mark.slow]
PLAN = StormPlan(
    seed=11,
    seconds=40,
    kills=12,
    every_s=3,
    people=2,
    compared=20,
    graded=20,
    rows=2_000,
    steps=0,
    latency_s=0.05,
    more=False,
    settled_s=300,
)


def test_nothing_is_lost_though_everything_is_killed(stack: Stack, tmp_path: Path) -> None:
    outcome = Storm(stack, PLAN, tmp_path).run()
    assert outcome.holds, f"{table(outcome)}\n{stack.logs()}"
    assert outcome.kills.total() > 3 and len(outcome.kills) > 2
