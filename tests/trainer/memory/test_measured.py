"""A forecast for this machine against the resident memory of a real step of training on it."""

import json
import os
import subprocess
import sys
from typing import Any

import pytest

from tests.trainer.memory.shapes import MIDDLE
from trainer.config import resolve
from trainer.memory.forecast import PROGRAM, forecast
from trainer.memory.shape import ModelShape

WITHIN = 0.15
"""Of what was measured. What the allocator keeps and the small tensors of a step are not in the forecast."""
OWN_PAGES = {"MALLOC_MMAP_THRESHOLD_": str(1 << 17)}
"""Every tensor gets pages of its own, which go back to the system with it. By default glibc keeps what it has for tensors
of up to 32 MiB, and as these are of many sizes, much of that cannot be used again: up to two thirds on top."""


def measured(raw: dict[str, Any], tokens: int) -> int:
    """Bytes that a step takes in a process that has done nothing before: what others left to an allocator would count as free."""
    command = [sys.executable, "-m", "tests.trainer.memory.step", json.dumps(raw), str(tokens)]
    done = subprocess.run(command, env=os.environ | OWN_PAGES, capture_output=True, text=True, check=True)
    return int(done.stdout)


@pytest.mark.parametrize("lora", [None, {"rank": 16}], ids=["all weights", "adapters"])
def test_the_forecast_is_near_what_a_step_takes(lora: Any, record_property: Any) -> None:
    tokens = 1024
    raw = {"model": {"lora": lora}, "optim": {"micro_batch_tokens": tokens}, "data": {"max_tokens": tokens}}
    found = forecast(resolve("sft", raw), ModelShape.of(MIDDLE), None).needed - PROGRAM
    taken = measured(raw, tokens)
    record_property("forecast_over_measured", found / taken)
    print(f"\nforecast {found / 2**20:.0f} MiB, measured {taken / 2**20:.0f} MiB: {found / taken:.3f} of it")
    assert found == pytest.approx(taken, rel=WITHIN)
