"""Tokens per second of sampling and of training, against TRL's GRPOTrainer: `python -m benchmarks.trainer`.

Both do the same step on the same model with the same prompts, one after the other in this process: P prompts x G
responses of at most T tokens at temperature 1, then one GRPO update of rank-16 adapters in float32. The first step warms
up and is not counted. Tokens are those of the responses, in both columns; prompts are work that neither gets credit for.
"""

import argparse
import json
import os
import platform
import tempfile
import time
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import torch

from trainer.config import resolve
from trainer.contracts import Message
from trainer.inference.chat import encode_prompt
from trainer.inference.local import LocalSampler
from trainer.inference.models import load_model, load_tokenizer, prepare_smollm2
from trainer.inference.sampling import SampleRequest
from trainer.loops.learner import Learner
from trainer.loops.update import Updater
from trainer.rollouts import PromptPlan, Reward, Trajectory

QUESTIONS = (
    "Why is the sky blue? One sentence.",
    "Give three tips for a quiet night.",
    "What does a bee do all day?",
    "Write a note to a colleague who is ill.",
)
GROUP, NEW_TOKENS, RANK = 8, 48, 16


@dataclass
class Speed:
    """Response tokens and the seconds they took."""

    sampled: int = 0
    sampling_s: float = 0.0
    trained: int = 0
    training_s: float = 0.0

    @property
    def sampling(self) -> float:
        return self.sampled / self.sampling_s

    @property
    def training(self) -> float:
        return self.trained / self.training_s


def main() -> None:
    parser = argparse.ArgumentParser(prog="python -m benchmarks.trainer", description=__doc__)
    parser.add_argument("--model", type=Path, default=Path("var/models/smollm2-135m-instruct"))
    parser.add_argument("--steps", type=int, default=2, help="measured steps of each side")
    options = parser.parse_args()
    prepare_smollm2(options.model)
    torch.set_num_threads(int(os.environ.get("OMP_NUM_THREADS") or os.cpu_count() or 1))
    ours = measure_ours(options.model, options.steps)
    peer = measure_trl(options.model, options.steps)
    print(f"{platform.processor() or platform.machine()}, {torch.get_num_threads()} threads, torch {torch.__version__}")
    print(f"{len(QUESTIONS)} prompts x {GROUP} responses x {NEW_TOKENS} tokens, {options.model.name}, float32")
    print(f"{'':12}{'ours':>12}{'TRL':>12}{'ratio':>8}   tokens/s")
    rows = {"sampling": (ours.sampling, peer.sampling), "training": (ours.training, peer.training)}
    for name, (mine, other) in rows.items():
        print(f"{name:12}{mine:12.1f}{other:12.1f}{mine / other:8.2f}")
    print(json.dumps({name: _entry(*pair) for name, pair in rows.items()}))


def measure_ours(directory: Path, steps: int) -> Speed:
    config = resolve(
        "policy",
        {
            "model": {"lora": {"rank": RANK, "alpha": 2.0 * RANK}},
            "rollout": {"prompts_per_step": len(QUESTIONS), "group_size": GROUP, "max_new_tokens": NEW_TOKENS},
            "scaffold": None,
        },
    )
    tokenizer = load_tokenizer(directory)
    learner = Learner(load_model(directory), config)
    sampler, updater = LocalSampler(load_model(directory), tokenizer), Updater(learner, config)
    speed = Speed()
    for step in range(steps + 1):
        requests = _requests(tokenizer, step)
        started = time.perf_counter()
        sampler.load_weights(learner.merged_weights(), step)
        results = sampler.sample(requests)
        sampled = time.perf_counter()
        trajectories = [
            _trajectory(i, request, result) for i, (request, result) in enumerate(zip(requests, results, strict=True))
        ]
        advantages_B = torch.tensor([1.0, -1.0]).repeat(len(requests) // 2)
        updater.run(trajectories, advantages_B)
        tokens = sum(len(result.tokens) for result in results)
        if step > 0:
            _add(speed, tokens, sampled - started, tokens, time.perf_counter() - sampled)
    return speed


def measure_trl(directory: Path, steps: int) -> Speed:
    from datasets import Dataset
    from peft import LoraConfig
    from trl import GRPOConfig, GRPOTrainer

    speed = Speed()
    seen = {"calls": 0, "sampling_s": 0.0}

    class Timed(GRPOTrainer):  # type: ignore[misc]
        def _generate_and_score_completions(self, inputs: Any) -> Any:
            started = time.perf_counter()
            output = super()._generate_and_score_completions(inputs)
            seen["sampling_s"] = time.perf_counter() - started
            seen["tokens"] = int(output["completion_mask"].sum())
            return output

        def training_step(self, *args: Any, **kwargs: Any) -> Any:
            started = time.perf_counter()
            loss = super().training_step(*args, **kwargs)
            if seen["calls"] > 0:
                rest = time.perf_counter() - started - seen["sampling_s"]
                _add(speed, int(seen["tokens"]), seen["sampling_s"], int(seen["tokens"]), rest)
            seen["calls"] += 1
            return loss

    with tempfile.TemporaryDirectory() as folder:
        arguments = GRPOConfig(
            output_dir=folder,
            use_cpu=True,
            bf16=False,
            per_device_train_batch_size=len(QUESTIONS) * GROUP,
            num_generations=GROUP,
            max_completion_length=NEW_TOKENS,
            max_steps=steps + 1,
            beta=0.0,
            temperature=1.0,
            gradient_checkpointing=False,
            report_to=[],
            save_strategy="no",
            disable_tqdm=True,
        )
        trainer = Timed(
            model=load_model(directory),
            processing_class=load_tokenizer(directory),
            reward_funcs=lambda completions, **_: [float(len(str(text)) % 7) for text in completions],
            args=arguments,
            train_dataset=Dataset.from_list(
                [{"prompt": [{"role": "user", "content": question}]} for question in QUESTIONS]
            ),
            peft_config=LoraConfig(r=RANK, lora_alpha=2 * RANK, target_modules="all-linear", task_type="CAUSAL_LM"),
        )
        trainer.train()
    return speed


def _requests(tokenizer: Any, step: int) -> list[SampleRequest]:
    prompts = [encode_prompt(tokenizer, [Message(role="user", content=question)]) for question in QUESTIONS]
    pairs = [(prompt, seed) for prompt in prompts for seed in range(GROUP)]
    return [SampleRequest(prompt, NEW_TOKENS, seed=1000 * step + seed) for prompt, seed in pairs]


def _trajectory(place: int, request: SampleRequest, result: Any) -> Trajectory:
    group, index = divmod(place, GROUP)
    prompt = request.prompt_tokens
    plan = PromptPlan(f"q{group}", group, index, QUESTIONS[group], prompt, prompt, request.seed)
    return Trajectory(
        plan, result.tokens, result.logprobs, result.text, result.finish_reason, result.version, Reward(0.0)
    )


def _add(speed: Speed, sampled: int, sampling_s: float, trained: int, training_s: float) -> None:
    speed.sampled += sampled
    speed.sampling_s += sampling_s
    speed.trained += trained
    speed.training_s += training_s


def _entry(mine: float, other: float) -> dict[str, Any]:
    return {"ours": round(mine, 1), "peer": round(other, 1), "unit": "tokens/s", "ratio": round(mine / other, 2)}


if __name__ == "__main__":
    main()
