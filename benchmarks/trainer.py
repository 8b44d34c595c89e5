"""A training step beside TRL's GRPOTrainer: `python -m benchmarks.trainer`.

Both do the same step on the same model with the same prompts: P prompts x G responses of exactly T tokens at temperature 1
(nothing ends one early), then one GRPO update of rank-16 adapters: forward and backward over all responses, clipping
of the gradient, a step of AdamW. Neither computes a reference model; both compute entropies. Tokens are those of the
responses, in both columns; prompts are work that neither gets credit for.

Each side and precision is measured in a process of its own, in turns; ours in one that begins as a run does
(trainer/process.py). A process's first step warms up and is not counted.
Peak memory is that of the whole process while it samples and while it trains; on a GPU, what torch allocated there. In
bfloat16 both have bfloat16 weights; what else is cast is each side's own affair; a processor that has no bfloat16 arithmetic
computes it by software, many times slower than float32, and gets fewer and shorter responses. The log-probability pass is
set against the machine's own matrix products, measured in the same process.
"""

import argparse
import json
import os
import subprocess
import sys
import tempfile
from dataclasses import replace
from pathlib import Path
from typing import Any
from unittest.mock import patch

import torch

from benchmarks import configs
from benchmarks.machine import describe
from benchmarks.trainer_side import DEVICE, Taken, TrainerSide, grpo_config, matmul_flops, pass_flops
from trainer.contracts import Message
from trainer.inference.chat import encode_prompt
from trainer.inference.local import LocalSampler
from trainer.inference.models import load_model, load_tokenizer, prepare_smollm2
from trainer.inference.prefix import PrefixTree, pack
from trainer.inference.products import computes_bfloat16
from trainer.inference.sampling import SampleRequest
from trainer.loops.learner.learner import Learner, Sequence_
from trainer.loops.policy.update import Updater
from trainer.rollouts import PromptPlan, Reward, Trajectory

QUESTIONS = (
    "Why is the sky blue? One sentence.",
    "Give three tips for a quiet night.",
    "What does a bee do all day?",
    "Write a note to a colleague who is ill.",
)
RANK = 16
DTYPES = ("float32", "bfloat16")
GROUP, TOKENS = 8, 48
_AS_A_RUN = "from trainer.process import settle; settle(); from benchmarks.trainer import main; main()"
"""Our side, in a process that begins as a run's process does (`python -m trainer`)."""
FEW, SHORT = 2, 8  # where bfloat16 is computed by software


def main() -> None:
    options = _options()
    if options.side:
        torch.set_num_threads(int(os.environ.get("OMP_NUM_THREADS") or len(os.sched_getaffinity(0))))
        print(json.dumps({"ours": measure_ours, "trl": measure_trl}[options.side](options)))
        return
    prepare_smollm2(options.model)
    machine = describe()
    taken: dict[tuple[str, str], list[Taken]] = {}
    for _ in range(options.rounds):
        for dtype in options.dtypes:
            for side in ("ours", "trl"):
                taken.setdefault((side, dtype), []).append(_in_own_process(options, side, dtype))
    print(f"{machine}, torch {torch.__version__} on {DEVICE}")
    results: dict[str, Any] = {}
    for dtype in options.dtypes:
        results |= _report(dtype, taken["ours", dtype], taken["trl", dtype], _sized(options, dtype))
    print(json.dumps(results))


def _options() -> argparse.Namespace:
    parser = argparse.ArgumentParser(prog="python -m benchmarks.trainer", description=__doc__)
    parser.add_argument("--model", type=Path, default=Path("var/models/smollm2-135m-instruct"))
    parser.add_argument("--steps", type=int, default=2, help="measured steps of each process")
    parser.add_argument("--rounds", type=int, default=1, help="processes of each side and precision, in turns")
    parser.add_argument("--dtypes", nargs="+", default=DTYPES, choices=DTYPES)
    parser.add_argument("--group", type=int, help=f"responses per prompt, {GROUP} or, in bfloat16 by software, {FEW}")
    parser.add_argument(
        "--tokens", type=int, help=f"tokens per response, {TOKENS} or, in bfloat16 by software, {SHORT}"
    )
    parser.add_argument("--budget", type=int, default=1024, help="our optim.micro_batch_tokens")
    parser.add_argument("--side", choices=("ours", "trl"), help=argparse.SUPPRESS)
    return parser.parse_args()


def _sized(options: argparse.Namespace, dtype: str) -> argparse.Namespace:
    """The options, with sizes that fit the CPU if they were left out."""
    slow = DEVICE == "cpu" and dtype == "bfloat16" and not computes_bfloat16()
    group, tokens = (FEW, SHORT) if slow else (GROUP, TOKENS)
    return argparse.Namespace(**vars(options) | {"group": options.group or group, "tokens": options.tokens or tokens})


def _tokens(options: argparse.Namespace) -> int:
    return int(len(QUESTIONS) * options.group * options.tokens)


def _in_own_process(options: argparse.Namespace, side: str, dtype: str) -> Taken:
    program = ["-c", _AS_A_RUN] if side == "ours" else ["-m", "benchmarks.trainer"]
    command = [sys.executable, *program, "--side", side, "--dtypes", dtype]
    sized = vars(_sized(options, dtype))
    for name in ("model", "steps", "group", "tokens", "budget"):
        command += [f"--{name}", str(sized[name])]
    done = subprocess.run(command, check=True, stdout=subprocess.PIPE, text=True)
    taken: Taken = json.loads(done.stdout.splitlines()[-1])
    return taken


def measure_ours(options: argparse.Namespace) -> Taken:
    (dtype,) = options.dtypes
    config = configs.policy(
        {
            "model": {"lora": {"rank": RANK, "alpha": 2.0 * RANK}, "dtype": dtype},
            "rollout": {
                "prompts_per_step": len(QUESTIONS),
                "group_size": options.group,
                "max_new_tokens": options.tokens,
            },
            "scaffold": None,
            "optim": {"micro_batch_tokens": options.budget},
        },
    )
    tokenizer, model = load_tokenizer(options.model), load_model(options.model, dtype).to(DEVICE)
    requests = _requests(tokenizer, options)
    tokenizer.eos_token = model.generation_config.eos_token_id = None  # no token ends a response
    learner, sampler = Learner(load_model(options.model, dtype).to(DEVICE), config), LocalSampler(model, tokenizer)
    updater, side = Updater(learner, config), TrainerSide(_tokens(options))
    advantages_B = torch.tensor([1.0, -1.0]).repeat(
        len(requests) // 2
    )  # no advantage is 0, so every response has a gradient
    trajectories: list[Trajectory] = []
    # The loop watches the KL of one group to the untrained model even if no loss uses it; TRL does not.
    with patch("trainer.loops.policy.update._Step._wants_reference", return_value=False):
        for step in range(options.steps + 1):
            with side.sampling():
                sampler.load_weights(learner.merged_weights(), step)
                results = sampler.sample([replace(request, seed=1000 * step + i) for i, request in enumerate(requests)])
                trajectories = [_trajectory(i, requests[i], options.group, found) for i, found in enumerate(results)]
            with side.training():
                updater.run(trajectories, advantages_B)
            side.step_done(sum(len(result.tokens) for result in results))
    sequences = [(t.plan.prompt_tokens, t.tokens) for t in trajectories]
    return side.taken() | {"roofline": _roofline(learner, model, sequences, options.budget)}


def _roofline(learner: Learner, model: Any, sequences: list[Sequence_], budget: int) -> list[float]:
    """FLOP/s of the log-probability pass over a step's responses, and of matrix products alone.

    Adapters are not counted as work: without them the policy would be the same.
    """
    read = [(prompt + response)[:-1] for prompt, response in sequences]
    packs = pack(read, budget)
    flops = 0.0
    for found in packs:
        tree = PrefixTree.of([read[i] for i in found.places])
        pairs = int((tree.positions_N + 1).sum())
        flops += pass_flops(model, found.nodes, pairs, sum(len(sequences[i][1]) for i in found.places))
    clock = TrainerSide(0)
    with torch.no_grad():
        for _ in range(2):  # the first one warms up
            with clock.training():
                for found in packs:
                    learner.score([sequences[i] for i in found.places], 1.0)
    return [flops / clock.last_s, matmul_flops(model.dtype)]


def measure_trl(options: argparse.Namespace) -> Taken:
    from datasets import Dataset
    from peft import LoraConfig
    from transformers import TrainerCallback
    from trl import GRPOTrainer

    (dtype,) = options.dtypes
    side = TrainerSide(_tokens(options))
    seen = {"tokens": 0}

    class Timed(GRPOTrainer):  # type: ignore[misc]
        def _generate_and_score_completions(self, inputs: Any) -> Any:
            side.end_training()
            with side.sampling():
                output = super()._generate_and_score_completions(inputs)
            seen["tokens"] = int(output["completion_mask"].sum())
            side.begin_training()
            return output

    class StepClock(TrainerCallback):
        """Measures the whole step: the trainer clips and calls the optimiser outside its `training_step`."""

        def on_step_begin(self, *args: Any, **kwargs: Any) -> None:
            side.begin_training()

        def on_step_end(self, *args: Any, **kwargs: Any) -> None:
            side.end_training()
            side.step_done(seen["tokens"])

    with tempfile.TemporaryDirectory() as folder:
        arguments = grpo_config(folder, len(QUESTIONS) * options.group, options, dtype)
        trainer = Timed(
            model=load_model(options.model, dtype),
            processing_class=load_tokenizer(options.model),
            reward_funcs=lambda completions, **_: [float(len(str(text)) % 7) for text in completions],
            args=arguments,
            train_dataset=Dataset.from_list(
                [{"prompt": [{"role": "user", "content": question}]} for question in QUESTIONS]
            ),
            peft_config=LoraConfig(r=RANK, lora_alpha=2 * RANK, target_modules="all-linear", task_type="CAUSAL_LM"),
            callbacks=[StepClock()],
        )
        trainer.train()
    return side.taken()


def _requests(tokenizer: Any, options: argparse.Namespace) -> list[SampleRequest]:
    prompts = [encode_prompt(tokenizer, [Message(role="user", content=question)]) for question in QUESTIONS]
    return [SampleRequest(prompt, options.tokens) for prompt in prompts for _ in range(options.group)]


def _trajectory(place: int, request: SampleRequest, size: int, result: Any) -> Trajectory:
    group, index = divmod(place, size)
    prompt = request.prompt_tokens
    plan = PromptPlan(f"q{group}", group, index, QUESTIONS[group], prompt, prompt, request.seed)
    return Trajectory.of(plan, result, Reward(0.0))


def _report(dtype: str, ours: list[Taken], peer: list[Taken], options: argparse.Namespace) -> dict[str, Any]:
    """Prints the table of one precision; rates from all counted steps, peaks the largest of all processes."""
    tokens = _tokens(options)
    print(f"\n{len(QUESTIONS)} prompts x {options.group} responses x {options.tokens} tokens, {options.model.name}")
    print(f"{dtype:28}{'ours':>12}{'TRL':>12}{'ratio':>8}")
    entries: dict[str, Any] = {}
    for name, phases in {
        "step": ("sampling", "training"),
        "sampling": ("sampling",),
        "training": ("training",),
    }.items():
        for clock, what in (("s", "wall"), ("cpu_s", "processor")):
            mine, other = (sum(t[f"{phase}_{clock}"] for t in side for phase in phases) for side in (ours, peer))
            steps = sum(t["steps"] for t in ours)
            print(f"{name + ', ' + what + ' s/step':28}{mine / steps:12.2f}{other / steps:12.2f}{other / mine:8.2f}")
            if clock == "s":
                rates = (steps * tokens / mine, steps * tokens / other)
                entries[f"{name} {dtype}"] = _entry(*rates, "tokens/s")
                print(f"{name + ', tokens/s':28}{rates[0]:12.1f}{rates[1]:12.1f}{rates[0] / rates[1]:8.2f}")
    for phase in ("sampling", "training"):
        mine, other = (max(t[f"{phase}_mib"] for t in side) for side in (ours, peer))
        print(f"{phase + ', peak MiB':28}{mine:12.0f}{other:12.0f}{mine / other:8.2f}")
        entries[f"{phase} memory {dtype}"] = _entry(mine, other, "MiB")
    reached, possible = (max(t["roofline"][i] for t in ours) / 1e9 for i in (0, 1))
    print(f"log-probabilities {reached:.1f} GFLOP/s, matrix products alone {possible:.1f}: {reached / possible:.0%}")
    entries[f"roofline {dtype}"] = _entry(reached, possible, "GFLOP/s, peer: matmul")
    return entries


def _entry(mine: float, other: float, unit: str) -> dict[str, Any]:
    return {"ours": round(mine, 1), "peer": round(other, 1), "unit": unit, "ratio": round(mine / other, 2)}


if __name__ == "__main__":
    main()
