"""Tokens per second of vLLM's engine against the local sampler: `python -m benchmarks.samplers`, where vLLM is installed.

Both get the same prompts and seeds, in turns: P prompts x G responses at temperature 1. With `--ragged` the lengths are drawn from 8
up to the longest, else every response has the full length. Each first call warms up and is not counted. The times are those
of the clock, as vLLM's engine is another process: run it on a quiet machine.
"""

import argparse
import importlib.util
import json
import os
import random
import time
from pathlib import Path
from typing import Any

import torch

from benchmarks import configs
from benchmarks.machine import away, describe
from trainer.contracts import Message
from trainer.inference.build import build_sampler
from trainer.inference.chat import encode_prompt
from trainer.inference.models import load_model, load_tokenizer, prepare_smollm2
from trainer.inference.sampling import Sampler, SampleRequest

QUESTIONS = (
    "Why is the sky blue? One sentence.",
    "Give three tips for a quiet night.",
    "What does a bee do all day?",
    "Write a note to a colleague who is ill.",
)


def main() -> None:
    parser = argparse.ArgumentParser(prog="python -m benchmarks.samplers", description=__doc__)
    parser.add_argument("--model", type=Path, default=Path("var/models/smollm2-135m-instruct"))
    parser.add_argument("--dtype", choices=["float32", "bfloat16"], default="float32")
    parser.add_argument("--group", type=int, default=16, help="responses per prompt")
    parser.add_argument("--tokens", type=int, default=64, help="of the longest response")
    parser.add_argument("--rounds", type=int, default=2, help="measured calls of each side")
    parser.add_argument("--ragged", action="store_true", help="responses of different lengths")
    options = parser.parse_args()
    if importlib.util.find_spec("vllm") is None:
        away("vLLM is not installed; `make vllm` makes an environment that has it")
    prepare_smollm2(options.model)
    torch.set_num_threads(int(os.environ.get("OMP_NUM_THREADS") or os.cpu_count() or 1))
    tokenizer = load_tokenizer(options.model)
    tokenizer.eos_token = None
    asked = _requests(tokenizer, options.group, options.tokens, options.ragged)
    samplers = {kind: _sampler(kind, options, tokenizer) for kind in ("local", "vllm")}
    seconds = dict.fromkeys(samplers, 0.0)
    for turn in range(options.rounds + 1):
        for kind, sampler in samplers.items():
            started = time.perf_counter()
            tokens = sum(len(result.tokens) for result in sampler.sample(asked))
            if tokens != sum(request.max_new_tokens for request in asked):
                raise RuntimeError(f"{kind} sampled {tokens} tokens: this would compare nothing")
            if turn:
                seconds[kind] += time.perf_counter() - started
    for sampler in samplers.values():
        sampler.close()
    speed = {kind: options.rounds * tokens / spent for kind, spent in seconds.items()}
    _tell(options, len(asked), speed)


def _sampler(kind: str, options: argparse.Namespace, tokenizer: Any) -> Sampler:
    config = configs.policy(
        {"sampler": {"kind": kind, "max_batch": 64}, "model": {"dtype": options.dtype, "lora": None}}
    )
    sampler: Any = build_sampler(config, options.model, tokenizer)
    sampler._stop_ids = frozenset()  # only the length ends a response
    sampler.load_weights(load_model(options.model, options.dtype).named_parameters(), version=1)  # as a run does first
    return sampler  # type: ignore[no-any-return]


def _requests(tokenizer: Any, group: int, tokens: int, ragged: bool) -> list[SampleRequest]:
    drawn = random.Random(0)  # noqa: S311 - lengths, no secrets
    prompts = [encode_prompt(tokenizer, [Message(role="user", content=question)]) for question in QUESTIONS]
    lengths = [drawn.randint(8, tokens) if ragged else tokens for _ in range(len(prompts) * group)]
    return [SampleRequest(prompts[place // group], length, seed=place) for place, length in enumerate(lengths)]


def _tell(options: argparse.Namespace, responses: int, speed: dict[str, float]) -> None:
    lengths = f"8 to {options.tokens}" if options.ragged else str(options.tokens)
    ratio = speed["vllm"] / speed["local"]
    print(f"{describe()}, torch {torch.__version__} with {torch.get_num_threads()} threads")
    print(f"{responses} responses of {lengths} tokens, {options.model.name}, {options.dtype}")
    print(f"{'':12}{'local':>12}{'vLLM':>12}{'ratio':>8}   tokens/s")
    print(f"{'sampling':12}{speed['local']:12.1f}{speed['vllm']:12.1f}{ratio:8.2f}")
    entry = {"ours": round(speed["local"], 1), "peer": round(speed["vllm"], 1), "unit": "tokens/s"}
    print(json.dumps({f"sampling_{options.dtype}": entry | {"ratio": round(speed["local"] / speed["vllm"], 2)}}))


if __name__ == "__main__":
    main()
