"""Healthy starts pass whatever their length and arithmetic; a sampler of other weights or settings does not."""

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
import torch

from trainer.inference.local import LocalSampler
from trainer.inference.models import load_model, load_tokenizer
from trainer.loops.engine_check import Agreement, agreement, allowed_outside
from trainer.loops.learner import Learner
from trainer.rollouts import PromptPlan, Reward, Trajectory, sample_plans

from .conftest import small_config

FAULTS: dict[str, Callable[[Any], None]] = {
    "another layer": lambda model: model.model.layers[0].mlp.down_proj.weight.mul_(3.0),
    "swapped layers": lambda model: swap(model.model.layers),
    "another head": lambda model: model.lm_head.weight.copy_(model.lm_head.weight.roll(1, 0)),
}


def swap(layers: Any) -> None:
    for one, other in zip(layers[0].parameters(), layers[1].parameters(), strict=True):
        kept = one.clone()
        one.copy_(other)
        other.copy_(kept)


def found(
    tiny_dir: Path, dtype: str, seed: int, fault: Callable[[Any], None] | None = None, **rollout: Any
) -> tuple[Agreement, str]:
    """One start: responses of a sampler, seen by a learner of the same model, unless the sampler has a fault."""
    sampled = {"max_new_tokens": 96, "top_p": 0.9} | rollout
    config = small_config(rollout=sampled, model={"dtype": dtype})
    tokenizer, model = load_tokenizer(tiny_dir), load_model(tiny_dir, dtype)
    if fault:
        with torch.no_grad():
            fault(model)
    prompt = tuple(tokenizer.encode("Say something."))
    plans = [PromptPlan("key", 0, place, "", prompt, prompt, seed * 100 + place) for place in range(4)]
    results = sample_plans(LocalSampler(model, tokenizer), plans, config.rollout)
    trajectories = [Trajectory.of(plan, r, Reward(0.0)) for plan, r in zip(plans, results, strict=True)]
    learner = Learner(load_model(tiny_dir, dtype), config)
    return agreement(learner, trajectories, small_config(rollout=sampled | {"temperature": 1.0}).rollout, dtype), dtype


@pytest.mark.parametrize("dtype", ["float32", "bfloat16"])
def test_healthy_starts_pass(dtype: str, tiny_dir: Path) -> None:
    for seed in range(5):
        seen, _ = found(tiny_dir, dtype, seed)
        assert seen.fits(dtype), seen


@pytest.mark.parametrize("fault", FAULTS)
@pytest.mark.parametrize("dtype", ["float32", "bfloat16"])
def test_a_sampler_of_other_weights_is_caught(dtype: str, fault: str, tiny_dir: Path) -> None:
    seen, _ = found(tiny_dir, dtype, 1, FAULTS[fault])
    assert not seen.fits(dtype), seen


@pytest.mark.parametrize("dtype", ["float32", "bfloat16"])
def test_another_temperature_is_caught(dtype: str, tiny_dir: Path) -> None:
    seen, _ = found(tiny_dir, dtype, 1, temperature=0.8)
    assert not seen.fits(dtype), seen


def test_the_allowance_grows_slower_than_the_responses() -> None:
    assert allowed_outside(0, "bfloat16") == 2
    assert allowed_outside(100, "bfloat16") == 7 and allowed_outside(10_000, "bfloat16") == 142
    assert not Agreement(10_000, 0.0, 143).fits("bfloat16") and Agreement(10_000, 0.0, 142).fits("bfloat16")
