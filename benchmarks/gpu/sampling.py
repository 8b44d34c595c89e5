"""(c) Samplers give sampled tokens the learner's probabilities, and a faulty start is caught: for the local sampler and vLLM.

The faults of `benchmarks.engine_check` are tried on the local sampler; on vLLM only those that can be pushed to it or requested.
"""

from collections.abc import Callable, Iterator
from copy import deepcopy
from dataclasses import replace
from importlib.util import find_spec
from pathlib import Path
from typing import Any

import torch

from benchmarks import configs, engine_check
from benchmarks.gpu.rows import MeasureRow, MeasureSetting, left_out
from trainer.config import PolicyConfig
from trainer.inference.build import build_sampler
from trainer.inference.models import best_device, load_model, load_tokenizer, make_tiny, prepare_smollm2
from trainer.loops.learner.engine_check import BOUNDS, EngineAgreement, agreement, allowed_outside
from trainer.loops.learner.learner import Learner
from trainer.rollouts import PromptPlan, Reward, Trajectory, sample_plans

DTYPES = ("float32", "bfloat16")
RESPONSES = 8
PROMPT = "Write a few sentences about the sea."


def _swap(model: Any) -> None:
    one, other = model.model.layers[0], model.model.layers[1]
    for mine, theirs in zip(one.parameters(), other.parameters(), strict=True):
        kept = mine.clone()
        mine.copy_(theirs)
        theirs.copy_(kept)


FAULTS: dict[str, Callable[[Any], None]] = {
    "another layer": lambda model: model.model.layers[0].mlp.down_proj.weight.mul_(3.0),
    "swapped layers": _swap,
}
"""The changes of the sampler's weights before they are pushed."""
OTHER_TEMPERATURE = 0.8


def run(setting: MeasureSetting) -> list[MeasureRow]:
    model_dir = setting.folder / "model"
    (make_tiny if setting.small else prepare_smollm2)(model_dir)
    rows = _starts(setting, model_dir)
    for dtype in DTYPES:
        rows += _of(SamplingStart(setting, model_dir, dtype, "local"))
        if find_spec("vllm") is None:
            rows.append(left_out(f"vLLM, {dtype}", "vLLM is not installed; `make gpu` installs it"))
        else:
            rows += _of(SamplingStart(setting, model_dir, dtype, "vllm"))
    return rows


def _starts(setting: MeasureSetting, model_dir: Path) -> list[MeasureRow]:
    """Starts of two steps each, as a run makes them: healthy ones pass, the others do not."""
    tokens, length, seeds = (256, 16, (0,)) if setting.small else (4096, 64, (0, 1, 2))
    dtype = "float32" if setting.small else "bfloat16"
    asked = engine_check.EngineSetting(model_dir, dtype, tokens, length, device=setting.device)
    passed = [engine_check.outcome(asked, seed)[0] for seed in seeds]
    healthy = float(sum(not how.startswith("caught") for how in passed))
    rows = [MeasureRow(f"healthy starts that pass, {dtype}", healthy, f"of {len(seeds)}", len(seeds), "at least")]
    faults = {"stale adapter": engine_check.stale_adapter} if setting.small else engine_check.FAULTS
    for name, fault in faults.items():
        # in bfloat16 a change by an update alone is rounded away, and the check only warns
        wide = replace(asked, dtype="float32") if name in engine_check.NEEDS_UPDATES else asked
        how, _ = engine_check.outcome(wide, 0, fault)
        rows.append(
            MeasureRow(f"{name} is caught, {wide.dtype}", float(how.startswith("caught")), "of 1", 1.0, "at least", how)
        )
    return rows


class SamplingStart:
    """The beginning of a run: a learner, and a sampler to which weights are pushed."""

    def __init__(self, setting: MeasureSetting, model_dir: Path, dtype: str, kind: str) -> None:
        self.dtype, self.kind = dtype, kind
        self._tokens = 64 if setting.small else 512
        self._tokenizer = load_tokenizer(model_dir)
        self.model = load_model(model_dir, dtype).to(best_device())
        self.config = self._config(1.0)
        self._sampler: Any = build_sampler(self.config, model_dir, self._tokenizer)
        self._learner = Learner(deepcopy(self.model), self.config, reference=False)

    def agrees(self, model: Any, temperature: float = 1.0) -> EngineAgreement:
        """The agreement of the learner with responses of `model`, sampled at `temperature`, which the learner does not know."""
        self._sampler.load_weights(((name, weight.detach()) for name, weight in model.named_parameters()), 1)
        prompt = tuple(self._tokenizer.encode(PROMPT))
        plans = [PromptPlan("key", 0, place, PROMPT, prompt, prompt, seed=place) for place in range(RESPONSES)]
        results = sample_plans(self._sampler, plans, self._config(temperature).rollout)
        trajectories = [Trajectory.of(plan, found, Reward(0.0)) for plan, found in zip(plans, results, strict=True)]
        return agreement(self._learner, trajectories, self.config)

    def close(self) -> None:
        self._sampler.close()

    def _config(self, temperature: float) -> PolicyConfig:
        return configs.policy(
            {
                "model": {"dtype": self.dtype, "lora": None},
                "sampler": {"kind": self.kind},
                "rollout": {"max_new_tokens": self._tokens, "temperature": temperature, "top_p": 0.9},
                "scaffold": None,
            },
        )


def _of(start: SamplingStart) -> Iterator[MeasureRow]:
    name = f"{'vLLM' if start.kind == 'vllm' else 'local sampler'}, {start.dtype}"
    try:
        seen = start.agrees(start.model)
        yield MeasureRow(f"{name}: mean difference, {seen.tokens} tokens", seen.mean, "nats", BOUNDS[start.dtype].mean)
        allowed = allowed_outside(seen.tokens, start.dtype)
        yield MeasureRow(f"{name}: tokens the learner rules out", seen.outside, "tokens", allowed)
        for fault, inflict in FAULTS.items():
            faulty = deepcopy(start.model)
            with torch.no_grad():
                inflict(faulty)
            yield _caught(f"{name}: {fault}", start, start.agrees(faulty))
        yield _caught(f"{name}: another temperature", start, start.agrees(start.model, OTHER_TEMPERATURE))
    finally:
        start.close()


def _caught(name: str, start: SamplingStart, seen: EngineAgreement) -> MeasureRow:
    caught = not seen.fits(start.dtype)
    return MeasureRow(
        f"{name} is caught", float(caught), "of 1", 1.0, "at least", f"mean {seen.mean:.3g}, {seen.outside} outside"
    )
