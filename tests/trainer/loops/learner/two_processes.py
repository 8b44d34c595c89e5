"""`python -m tests.trainer.loops.learner.two_processes MODEL OUT`: updates of one process and of two over gloo, saved for a test.

The two processes are forks, so that libraries are imported once. The parent must not have computed anything before.
"""

import sys
from pathlib import Path
from typing import Any

import torch

from trainer.config import resolve
from trainer.inference.models import load_model
from trainer.inference.sampling import SampleResult
from trainer.loops.learner.learner import Learner
from trainer.loops.learner.sharding import ModelShare
from trainer.loops.policy.update import Updater
from trainer.rollouts import PromptPlan, Reward, Trajectory

from .gloo_group import run_group

# More packs than processes and an odd number of them, updates after the first, a second pass. The rate is small because Adam's
# first steps have the same size even for a very small gradient, so they would enlarge what rounding leaves of a zero.
OPTIM = {"lr": 1e-6, "minibatch_size": 6, "epochs_per_step": 2, "micro_batch_tokens": 64, "grad_clip": 100.0}
CASES: dict[str, dict[str, Any]] = {
    "adapters, KL in the loss": {"objective": {"name": "grpo", "kl_beta": 0.1}},
    "adapters, bfloat16": {"model": {"dtype": "bfloat16"}},
    "all weights, Muon, recomputed activations": {
        "model": {"lora": None},
        "optim": OPTIM | {"optimizer": "muon", "recompute_activations": True},
    },
    "all weights, bfloat16": {"model": {"lora": None, "dtype": "bfloat16"}},
}


def step() -> list[Trajectory]:
    """Three prompts, four responses each; every fourth one will have no advantage."""
    draw, found = torch.Generator().manual_seed(0), []
    prompts = [tuple(torch.randint(60, (30,), generator=draw).tolist()) for _ in range(3)]
    for place in range(12):
        prompt, length = prompts[place // 4], 5 + place % 4
        response = tuple(torch.randint(60, (length,), generator=draw).tolist())
        plan = PromptPlan("key", place // 4, place % 4, "", prompt, prompt, 0)
        result = SampleResult(response, (-5.0,) * length, "", "length", 0)
        found.append(Trajectory.of(plan, result, Reward(0.0)))
    return found


def work(model: Path, case: str, share: ModelShare) -> dict[str, Any]:
    settings = {"scaffold": None, "rollout": {"prompts_per_step": 3, "group_size": 4}, "optim": OPTIM}
    config: Any = resolve("policy", settings | CASES[case])
    dtype = config.model.dtype if share.ranks == 1 or config.model.lora else "float32"
    learner = Learner(load_model(model, dtype), config, share)
    report = Updater(learner, config).run(step(), torch.tensor([1.0, -1.0, 0.5, 0.0] * 3))
    saved = learner.state_tensors()
    with learner.holding({name: value * 2 for name, value in saved["policy"].items()}):
        doubled = dict(learner.merged_weights())
    learner.load_state_tensors(saved)
    merged = dict(learner.merged_weights())
    return {"report": report, "saved": saved, "again": learner.state_tensors(), "merged": merged, "doubled": doubled}


def in_two(model: Path, folder: Path) -> dict[str, list[dict[str, Any]]]:
    """{case: the results of each process}."""

    def part(share: ModelShare) -> None:
        torch.save({case: work(model, case, share) for case in CASES}, folder / f"{share.rank}.pt")

    ends = run_group(part, folder / "store", 2)
    if any(ends):
        raise SystemExit(f"the processes ended with {ends}")
    found = [torch.load(folder / f"{rank}.pt", weights_only=False) for rank in (0, 1)]
    return {case: [each[case] for each in found] for case in CASES}


if __name__ == "__main__":
    torch.set_num_threads(1)
    directory, out = Path(sys.argv[1]), Path(sys.argv[2])
    shares = in_two(directory, out)
    alone = {case: work(directory, case, ModelShare()) for case in CASES}
    torch.save((alone, shares), out / "found.pt")
