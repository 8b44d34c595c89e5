"""(d) Steps of a run with learner and local sampler on one GPU: the peak of memory beside the planner's forecast."""

from collections.abc import Callable
from copy import deepcopy
from dataclasses import dataclass
from typing import Any

import torch

from benchmarks import configs
from benchmarks.gpu.meter import empty, measuring, own_gib
from benchmarks.gpu.rows import MeasureRow, MeasureSetting
from benchmarks.gpu.shapes import HALF, ONE_AND_HALF, SEVEN, TOY, Shape, config_of, make
from trainer.config import PolicyConfig
from trainer.inference.local import LocalSampler
from trainer.inference.models import load_tokenizer, make_tiny
from trainer.loops.learner.learner import Learner
from trainer.loops.policy.update import Updater
from trainer.memory.forecast import Device, forecast
from trainer.memory.shape import GIB, ModelShape
from trainer.rollouts import PromptPlan, Reward, Trajectory, sample_plans

STEPS = 20
PROMPT_TOKENS, NEW_TOKENS = 128, 64
WITHIN = 0.10
"""The allowed error of the forecast, as a part of the peak."""


@dataclass(frozen=True)
class StepCase:
    shape: Shape
    rank: int | None
    """The rank of the adapters; None: all weights are trained."""

    @property
    def name(self) -> str:
        return f"{self.shape.name} {f'LoRA-{self.rank}' if self.rank else 'full'}"

    def config(self, prompts: int, group: int, tokens: int, **optim: Any) -> PolicyConfig:
        return configs.policy(
            {
                "model": {"dtype": "bfloat16", "lora": {"rank": self.rank, "alpha": 32.0} if self.rank else None},
                "rollout": {"prompts_per_step": prompts, "group_size": group, "max_new_tokens": tokens},
                "scaffold": None,
                "optim": {"lr": 1e-6, "micro_batch_tokens": 2048} | optim,
            },
        )


CASES = (StepCase(HALF, None), StepCase(ONE_AND_HALF, None), StepCase(SEVEN, 16))
SMALL = (StepCase(TOY, None), StepCase(TOY, 4))


def run(setting: MeasureSetting) -> list[MeasureRow]:
    rows: list[MeasureRow] = []
    for case in SMALL if setting.small else CASES:
        rows += _steps(case, setting)
        empty(setting.device)
    return rows


def _steps(case: StepCase, setting: MeasureSetting) -> list[MeasureRow]:
    count, config = (2, case.config(2, 2, 4)) if setting.small else (STEPS, case.config(4, 8, NEW_TOKENS))
    tiny = setting.folder / "tiny"
    make_tiny(tiny)  # for its tokenizer: the texts of random weights mean nothing
    with measuring(setting.device) as measured:
        step = stepping(case, config, setting, load_tokenizer(tiny))
        norms = [step(number) for number in range(count)]
    moved = all(norm == norm and 0.0 < norm < float("inf") for norm in norms)
    return [
        MeasureRow(f"{case.name}: {count} steps with a gradient", float(moved), "of 1", 1.0, "at least"),
        MeasureRow(f"{case.name}: time of a step", measured.seconds / count, "s"),
        MeasureRow(f"{case.name}: peak memory", measured.peak_gib, "GiB"),
        _forecast(case, config, measured.peak_gib, setting),
    ]


def stepping(case: StepCase, config: PolicyConfig, setting: MeasureSetting, tokenizer: Any) -> Callable[[int], float]:
    """A function that makes step `number` (push, sample, update) and returns the norm of its gradient."""
    model = make(case.shape, torch.bfloat16, setting.device)
    sampler = LocalSampler(deepcopy(model), tokenizer)
    sampler._stop_ids = frozenset()  # every response has its full length
    learner = Learner(model, config)
    updater, rollout = Updater(learner, config), config.rollout
    prompt = tuple(range(7, 7 + (8 if setting.small else PROMPT_TOKENS)))
    size = rollout.group_size
    advantages_B = torch.tensor([1.0, -1.0]).repeat(rollout.prompts_per_step * size // 2)

    def step(number: int) -> float:
        sampler.load_weights(learner.merged_weights(), number)
        plans = [
            PromptPlan(f"q{place // size}", place // size, place % size, "", own, own, seed=1000 * number + place)
            for place in range(len(advantages_B))
            for own in [(place // size, *prompt)]
        ]
        results = sample_plans(sampler, plans, rollout)
        found = [Trajectory.of(plan, result, Reward(0.0)) for plan, result in zip(plans, results, strict=True)]
        return updater.run(found, advantages_B).grad_norms[-1]

    return step


def _forecast(case: StepCase, config: PolicyConfig, peak_gib: float, setting: MeasureSetting) -> MeasureRow:
    """The difference between the planner's forecast and the measured memory. The forecast counts what CUDA itself holds."""
    on_card = setting.device == "cuda"
    shape = ModelShape.of(config_of(case.shape).to_dict())
    foretold = forecast(config, shape, Device("gpu" if on_card else "cpu", 0)).needed / GIB
    taken = peak_gib + (own_gib() if on_card else 0.0)
    why = f"{foretold:.2f} GiB foretold, {taken:.2f} GiB taken"
    mark = None if setting.small else WITHIN  # most of a toy's memory is the program's
    return MeasureRow(
        f"{case.name}: forecast apart from the peak", abs(foretold - taken) / taken, "of the peak", mark, why=why
    )
