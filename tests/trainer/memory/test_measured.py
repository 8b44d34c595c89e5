"""A forecast for this machine against the resident memory of a real step of training on it."""

import ctypes
import gc
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from tests.trainer.memory.shapes import SMALL
from trainer.config import resolve
from trainer.loops.learner import Learner, Marked
from trainer.memory.forecast import PROGRAM, forecast
from trainer.memory.shape import ModelShape

WITHIN = 0.15
"""Of what was measured. What the allocator keeps and the small tensors of a step are not in the forecast."""
MODEL = SMALL | {
    "hidden_size": 512,
    "intermediate_size": 1536,
    "num_hidden_layers": 6,
    "num_attention_heads": 8,
    "num_key_value_heads": 4,
    "head_dim": 64,
    "vocab_size": 8000,
}


@pytest.fixture(autouse=True)
def own_pages() -> Iterator[None]:
    """Every tensor gets pages of its own, which go back to the system with it. By default glibc keeps what it has for tensors
    of up to 32 MiB, and as these are of many sizes, much of that cannot be used again: up to two thirds on top."""
    libc, threshold = ctypes.CDLL(None), -3  # M_MMAP_THRESHOLD of malloc.h
    libc.mallopt(threshold, 1 << 17)
    libc.malloc_trim(0)
    yield
    libc.mallopt(threshold, 1 << 25)


def resident(name: str) -> int:
    lines = Path("/proc/self/status").read_text().splitlines()
    return next(int(line.split()[1]) * 1024 for line in lines if line.startswith(name))


def a_step(config: Any, tokens: int) -> int:
    """Bytes by which the most that this process had in memory during a step lies above what it had before."""
    from transformers import AutoConfig, AutoModelForCausalLM

    wanted = AutoConfig.for_model("llama", **{key: value for key, value in MODEL.items() if key != "model_type"})
    gc.collect()
    before = resident("VmRSS")
    Path("/proc/self/clear_refs").write_text("5")  # the highest so far is forgotten
    learner = Learner(AutoModelForCausalLM.from_config(wanted), config, reference=False)
    row = Marked(tuple(i % 7999 for i in range(tokens + 1)), range(1, tokens + 1))
    for _ in range(2):  # the first makes the optimiser's moments
        learner.begin_update()
        for _ in range(2):  # passes: the gradients of the first are there while the second keeps its activations
            learner.measure([row])[0].logp_T.mean().neg().backward()
        learner.clip(1.0)
        learner.end_update()
    return resident("VmHWM") - before


@pytest.mark.parametrize("lora", [None, {"rank": 16}], ids=["all weights", "adapters"])
def test_the_forecast_is_near_what_a_step_takes(lora: Any, record_property: Any) -> None:
    tokens = 1024
    config = resolve(
        "sft", {"model": {"lora": lora}, "optim": {"micro_batch_tokens": tokens}, "data": {"max_tokens": tokens}}
    )
    found = forecast(config, ModelShape.of(MODEL), None).needed - PROGRAM
    measured = a_step(config, tokens)
    record_property("forecast_over_measured", found / measured)
    print(f"\nforecast {found / 2**20:.0f} MiB, measured {measured / 2**20:.0f} MiB: {found / measured:.3f} of it")
    assert found == pytest.approx(measured, rel=WITHIN)
