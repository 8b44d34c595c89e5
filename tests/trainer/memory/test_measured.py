"""A forecast for this machine compared with the resident memory of a real step of training."""

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
"""The allowed error, as a share of the measured memory. The forecast does not include the memory that the allocator keeps and the small
tensors of a step.
"""
OWN_PAGES = {"MALLOC_MMAP_THRESHOLD_": str(1 << 17)}
"""Every tensor gets separate pages, which go back to the system with it. By default glibc keeps the memory of tensors of up to 32 MiB. They
have many sizes, so much of it cannot be used again: up to two thirds on top.
"""


TOKENS = 1024
CASES: dict[str, Any] = {"all weights": None, "adapters": {"rank": 16}}


def raw(case: str) -> dict[str, Any]:
    return {
        "model": {"lora": CASES[case]},
        "optim": {"micro_batch_tokens": TOKENS},
        "data": {"max_tokens": TOKENS},
    }


@pytest.fixture(scope="module")
def measured() -> dict[str, int]:
    """Bytes that a step takes in a new process, by case. In a used process, memory that earlier steps left to the allocator would count as
    free.
    """
    command = [
        sys.executable,
        "-m",
        "tests.trainer.memory.step",
        str(TOKENS),
        *(json.dumps(raw(case)) for case in CASES),
    ]
    done = subprocess.run(command, env=os.environ | OWN_PAGES, capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    return dict(zip(CASES, map(int, done.stdout.split()), strict=True))


@pytest.mark.parametrize("case", CASES)
def test_the_forecast_is_near_what_a_step_takes(case: str, measured: dict[str, int], record_property: Any) -> None:
    found = forecast(resolve("sft", raw(case)), ModelShape.of(MIDDLE), None).needed - PROGRAM
    taken = measured[case]
    record_property("forecast_over_measured", found / taken)
    print(f"\nforecast {found / 2**20:.0f} MiB, measured {taken / 2**20:.0f} MiB: {found / taken:.3f} of it")
    assert found == pytest.approx(taken, rel=WITHIN)
