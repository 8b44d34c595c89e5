"""The demo's sampling: tokens per second of the local sampler on the prompts of demo/run.json, `python -m benchmarks.sampling`.

Samples a step in the middle of the run: P prompts x G responses with the demo's length, temperature and scaffold; the model ends
its responses. Each way of holding the weights samples the same requests in turns; its first turn is not counted. Printed are
the median of the tokens per second of wall time, and CPU milliseconds a token, which other work on the machine changes less.
"""

import argparse
import json
import time
from dataclasses import dataclass, field
from pathlib import Path
from statistics import median
from typing import Any

import torch

from benchmarks import configs
from benchmarks.demo import DEMO, ROOT
from benchmarks.machine import describe
from trainer.config import PolicyConfig
from trainer.inference.build import build_sampler
from trainer.inference.models import load_tokenizer, prepare_smollm2
from trainer.inference.sampling import SampleRequest
from trainer.loops.prompts.data import prepare_prompts, read_examples
from trainer.loops.prompts.planner import Planner


@dataclass
class Way:
    name: str
    changes: dict[str, Any]
    rates: list[float] = field(default_factory=list)
    processor: list[float] = field(default_factory=list)


WAYS = (
    Way("float32", {}),
    Way("bfloat16", {"model": {"dtype": "bfloat16"}}),
)


def main() -> None:
    parser = argparse.ArgumentParser(prog="python -m benchmarks.sampling", description=__doc__)
    parser.add_argument("--model", type=Path, default=ROOT / "var/models/smollm2-135m-instruct")
    parser.add_argument("--rounds", type=int, default=5, help="turns of each way that are counted")
    parser.add_argument("--ways", nargs="+", default=[way.name for way in WAYS], choices=[way.name for way in WAYS])
    options = parser.parse_args()
    prepare_smollm2(options.model)
    ways = [way for way in WAYS if way.name in options.ways]
    config = _config({})
    requests = _requests(config, options.model)
    samplers = {
        way.name: build_sampler(_config(way.changes), options.model, load_tokenizer(options.model)) for way in ways
    }
    for turn in range(options.rounds + 1):
        for way in ways:
            _take(way, samplers[way.name], requests, counted=turn > 0)
    print(f"{describe()}, torch {torch.__version__} with {torch.get_num_threads()} threads")
    print(f"{len(requests)} responses of at most {config.rollout.max_new_tokens} tokens, {options.model.name}")
    for way in ways:
        print(f"{way.name:10} {median(way.rates):8.1f} tokens/s, processor {median(way.processor):6.2f} ms a token")
    first = median(ways[0].rates)
    print(json.dumps({f"demo sampling, {way.name}": _entry(median(way.rates), first) for way in ways}))


def _config(changes: dict[str, Any]) -> PolicyConfig:
    return configs.policy(json.loads((DEMO / "run.json").read_text())["config"] | changes)


def _requests(config: PolicyConfig, model: Path) -> list[SampleRequest]:
    tokenizer = load_tokenizer(model)
    prompts = prepare_prompts(read_examples(DEMO / "prompts.jsonl"), tokenizer, config)
    rollout = config.rollout
    return [
        SampleRequest(
            plan.sampled_prompt_tokens, rollout.max_new_tokens, rollout.temperature, rollout.top_p, seed=plan.seed
        )
        for plan in Planner(config, prompts.train, tokenizer).plan(config.steps // 4)
    ]


def _take(way: Way, sampler: Any, requests: list[SampleRequest], counted: bool) -> None:
    began, used = time.perf_counter(), time.process_time()
    tokens = sum(len(result.tokens) for result in sampler.sample(requests))
    if counted:
        way.rates.append(tokens / (time.perf_counter() - began))
        way.processor.append((time.process_time() - used) * 1e3 / tokens)


def _entry(rate: float, peer: float) -> dict[str, Any]:
    return {"ours": round(rate, 1), "peer": round(peer, 1), "unit": "tokens/s", "ratio": round(rate / peer, 2)}


if __name__ == "__main__":
    main()
