"""The short form of `make chaos`: every kind of process is killed while everything works, and nothing is lost."""

from pathlib import Path

import pytest

from benchmarks.chaos.storm import Plan, Storm, table
from tests.stack import Stack

pytestmark = [pytest.mark.stack, pytest.mark.slow]
PLAN = Plan(
    seed=11, seconds=45, kills=14, every_s=3, people=2, pairs=40, rows=4_000, steps=6, latency_s=0.05, more_runs=False
)


def test_nothing_is_lost_though_everything_is_killed(stack: Stack, tmp_path: Path) -> None:
    outcome = Storm(stack, PLAN, tmp_path).run()
    assert outcome.holds, f"{table(outcome)}\n{stack.logs()}"
    assert {"web server", "worker", "Redis", "Postgres"} <= outcome.kills.keys()
