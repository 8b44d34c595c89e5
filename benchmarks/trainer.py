"""Tokens per second of sampling and of training, against TRL's GRPOTrainer: `python -m benchmarks.trainer`.

Both do the same step on the same model with the same prompts, one after the other in this process: P prompts x G
responses of exactly T tokens at temperature 1 (nothing ends one early), then one GRPO update of rank-16 adapters in
float32: forward and backward over all responses, clipping of the gradient, a step of AdamW. Neither computes a reference
model; both compute entropies. The first step warms up and is not counted. Tokens are those of the responses, in both
columns; prompts are work that neither gets credit for.
"""

import argparse
import json
import os
import tempfile
import time
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any
from unittest.mock import patch

import torch

from benchmarks.machine import describe
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
TOKENS = len(QUESTIONS) * GROUP * NEW_TOKENS  # of a step


@dataclass
class Speed:
    """Counted steps and the seconds their halves took."""

    steps: int = 0
    sampling_s: float = 0.0
    training_s: float = 0.0

    def add(self, tokens: int, sampling_s: float, training_s: float) -> None:
        """Raises RuntimeError where a step was not the work that both sides agreed on."""
        if tokens != TOKENS:
            raise RuntimeError(f"a step of {tokens} response tokens instead of {TOKENS}: this would compare nothing")
        self.steps += 1
        self.sampling_s += sampling_s
        self.training_s += training_s

    @property
    def sampling(self) -> float:
        return self.steps * TOKENS / self.sampling_s

    @property
    def training(self) -> float:
        return self.steps * TOKENS / self.training_s


def main() -> None:
    parser = argparse.ArgumentParser(prog="python -m benchmarks.trainer", description=__doc__)
    parser.add_argument("--model", type=Path, default=Path("var/models/smollm2-135m-instruct"))
    parser.add_argument("--steps", type=int, default=2, help="measured steps of each side")
    options = parser.parse_args()
    prepare_smollm2(options.model)
    torch.set_num_threads(int(os.environ.get("OMP_NUM_THREADS") or os.cpu_count() or 1))
    ours = measure_ours(options.model, options.steps)
    peer = measure_trl(options.model, options.steps)
    print(f"{describe()}, torch {torch.__version__} with {torch.get_num_threads()} threads")
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
    tokenizer, model = load_tokenizer(directory), load_model(directory)
    requests = _requests(tokenizer)
    tokenizer.eos_token = model.generation_config.eos_token_id = None  # nothing stops a response
    learner, sampler = Learner(load_model(directory), config), LocalSampler(model, tokenizer)
    updater, speed = Updater(learner, config), Speed()
    advantages_B = torch.tensor([1.0, -1.0]).repeat(len(requests) // 2)  # none is 0: every response has a gradient
    # The loop watches the KL of one group to the untrained model even where no loss uses it; TRL does not.
    with patch("trainer.loops.update._Step._wants_reference", return_value=False):
        for step in range(steps + 1):
            started = time.perf_counter()
            sampler.load_weights(learner.merged_weights(), step)
            results = sampler.sample([replace(request, seed=1000 * step + i) for i, request in enumerate(requests)])
            sampled = time.perf_counter()
            updater.run([_trajectory(i, requests[i], result) for i, result in enumerate(results)], advantages_B)
            if step > 0:
                tokens = sum(len(result.tokens) for result in results)
                speed.add(tokens, sampled - started, time.perf_counter() - sampled)
    return speed


def measure_trl(directory: Path, steps: int) -> Speed:
    from datasets import Dataset
    from peft import LoraConfig
    from transformers import TrainerCallback
    from trl import GRPOConfig, GRPOTrainer

    speed = Speed()
    seen = {"tokens": 0, "sampling_s": 0.0, "started": 0.0}

    class Timed(GRPOTrainer):  # type: ignore[misc]
        def _generate_and_score_completions(self, inputs: Any) -> Any:
            started = time.perf_counter()
            output = super()._generate_and_score_completions(inputs)
            seen["sampling_s"] = time.perf_counter() - started
            seen["tokens"] = int(output["completion_mask"].sum())
            return output

    class Clock(TrainerCallback):  # type: ignore[misc]
        """Around the whole step: the trainer clips and calls the optimiser outside its `training_step`."""

        def on_step_begin(self, *args: Any, **kwargs: Any) -> None:
            seen["started"] = time.perf_counter()

        def on_step_end(self, args: Any, state: Any, *rest: Any, **kwargs: Any) -> None:
            whole = time.perf_counter() - seen["started"]
            if state.global_step > 1:
                speed.add(int(seen["tokens"]), seen["sampling_s"], whole - seen["sampling_s"])

    with tempfile.TemporaryDirectory() as folder:
        arguments = GRPOConfig(
            output_dir=folder,
            use_cpu=True,
            bf16=False,
            per_device_train_batch_size=len(QUESTIONS) * GROUP,
            num_generations=GROUP,
            max_completion_length=NEW_TOKENS,
            generation_kwargs={"min_new_tokens": NEW_TOKENS},
            max_steps=steps + 1,
            loss_type="grpo",
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
            callbacks=[Clock()],
        )
        trainer.train()
    return speed


def _requests(tokenizer: Any) -> list[SampleRequest]:
    prompts = [encode_prompt(tokenizer, [Message(role="user", content=question)]) for question in QUESTIONS]
    return [SampleRequest(prompt, NEW_TOKENS) for prompt in prompts for _ in range(GROUP)]


def _trajectory(place: int, request: SampleRequest, result: Any) -> Trajectory:
    group, index = divmod(place, GROUP)
    prompt = request.prompt_tokens
    plan = PromptPlan(f"q{group}", group, index, QUESTIONS[group], prompt, prompt, request.seed)
    return Trajectory(
        plan, result.tokens, result.logprobs, result.text, result.finish_reason, result.version, Reward(0.0)
    )


def _entry(mine: float, other: float) -> dict[str, Any]:
    return {"ours": round(mine, 1), "peer": round(other, 1), "unit": "tokens/s", "ratio": round(mine / other, 2)}


if __name__ == "__main__":
    main()
