"""Measures the time of a push of SmolLM2-135M to the local sampler: `python -m benchmarks.pushes`.

All weights and adapters of rank 16, in float32, as recipe `policy` pushes them, with checksums, until the sampler is ready to sample.
All weights go from one model in memory to another, or the sampler follows the learner in one memory, as synchronous
runs do; adapters are merged into the weights that are pushed, or pushed as they are (`sampler.push`). Printed are the median and the
95th percentile of wall time, and CPU seconds, which other work on the machine does not change; read those on a busy machine.
"""

import argparse
import json
import time
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import torch

from benchmarks import configs
from benchmarks.machine import describe
from trainer.inference.build import build_sampler
from trainer.inference.models import load_model, load_tokenizer, prepare_smollm2
from trainer.loops.learner.learner import Learner
from trainer.loops.learner.weight_push import WeightPusher


@dataclass(frozen=True)
class PushWay:
    name: str
    lora: dict[str, Any] | None
    push: str = "merged"
    follows: bool = False


WAYS = (
    PushWay("all weights, copied", None),
    PushWay("all weights, in one memory", None, follows=True),
    PushWay("adapters, merged", {"rank": 16}),
    PushWay("adapters as they are", {"rank": 16}, push="adapters"),
)


def main() -> None:
    parser = argparse.ArgumentParser(prog="python -m benchmarks.pushes", description=__doc__)
    parser.add_argument("--model", type=Path, default=Path("var/models/smollm2-135m-instruct"))
    parser.add_argument("--pushes", type=int, default=20, help="of each way; one before them is not measured")
    options = parser.parse_args()
    prepare_smollm2(options.model)
    print(describe())
    found = {way.name: measured(way, options.model, options.pushes) for way in WAYS}
    results = {}
    for slow, fast in (WAYS[:2], WAYS[2:]):
        ours, peer = found[fast.name], found[slow.name]
        results[f"push, {fast.name}"] = {"ours": ours, "peer": peer, "unit": "ms", "ratio": peer / ours}
    print(json.dumps(results))


def measured(way: PushWay, model: Path, pushes: int) -> float:
    """The median in ms."""
    config = configs.policy({"model": {"lora": way.lora}, "sampler": {"push": way.push}})
    learner = Learner(load_model(model, "float32"), config, reference=False)
    sampler: Any = build_sampler(config, model, load_tokenizer(model))
    if way.follows:
        sampler.follow(learner.plain)
    pusher = WeightPusher(config, learner, sampler)
    clock, processor = [], []
    for number in range(pushes + 1):
        with torch.no_grad():
            for parameter in learner.parameters.values():
                parameter.add_(1e-3)
        began, used = time.perf_counter(), time.process_time()
        pusher.push(number)
        clock.append((time.perf_counter() - began) * 1e3)
        processor.append((time.process_time() - used) * 1e3)
    clock, processor = sorted(clock[1:]), sorted(processor[1:])
    half, late = len(clock) // 2, min(len(clock) - 1, int(0.95 * len(clock)))
    print(
        f"{way.name}: p50 {clock[half]:.1f} ms, p95 {clock[late]:.1f} ms; processor p50 {processor[half]:.1f} ms, "
        f"p95 {processor[late]:.1f} ms"
    )
    return clock[half]


if __name__ == "__main__":
    main()
