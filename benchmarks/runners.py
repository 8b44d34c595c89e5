"""The simulator against real asynchronous runs: predicted and measured steps per second, tiny model, 1 and 2 workers.

The costs that the simulator is given (decoding, updating, pushing, lengths) are taken from the parts alone and from a
synchronous run; the asynchronous runs are not looked at before they are predicted.
"""

import argparse
import json
import os
import statistics
import tempfile
import time
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import torch

from benchmarks.machine import describe
from trainer.config import PolicyConfig, resolve
from trainer.contracts import Criterion, Example, Message, Rubric, VerifierSpec
from trainer.inference.local import LocalSampler
from trainer.inference.models import load_model, load_tokenizer, make_tiny
from trainer.inference.sampling import SampleRequest
from trainer.loops.data import prepare_prompts
from trainer.loops.learner import Learner
from trainer.loops.parts import Parts
from trainer.loops.policy import PolicyLoop
from trainer.monitors import RunMonitor, Spool
from trainer.runners import AsyncPolicyLoop
from trainer.runners.ray_fleet import RayFleet
from trainer.simulator.config import Simulation
from trainer.simulator.draws import Draws
from trainer.simulator.simulate import simulate

PROMPTS, GROUP, NEW_TOKENS = 4, 4, 256
WARMUP = 4


class Timed:
    """The seconds that a loop spends updating and pushing, and when its steps were done."""

    def __init__(self, loop: PolicyLoop) -> None:
        self.update_s: list[float] = []
        self.push_s: list[float] = []
        self.done_at: list[float] = []
        self.lengths: list[int] = []
        self._wrap(loop, "_update", self.update_s, self._note_lengths)
        self._wrap(loop, "_push_weights", self.push_s, lambda *_: self.done_at.append(time.perf_counter()))

    def _wrap(self, loop: PolicyLoop, name: str, seconds: list[float], after: Any) -> None:
        call = getattr(loop, name)

        def timed(*arguments: Any) -> Any:
            started = time.perf_counter()
            result = call(*arguments)
            seconds.append(time.perf_counter() - started)
            after(*arguments)
            return result

        setattr(loop, name, timed)

    def _note_lengths(self, step: int, trajectories: Sequence[Any], advantages: Any) -> None:
        self.lengths += [len(trajectory.tokens) for trajectory in trajectories]

    @property
    def steps_per_s(self) -> float:
        return (len(self.done_at) - 1 - WARMUP) / (self.done_at[-1] - self.done_at[WARMUP])


def main() -> None:
    parser = argparse.ArgumentParser(prog="python -m benchmarks.runners", description=__doc__)
    parser.add_argument("--steps", type=int, default=24, help="steps of each run, the first few to warm up")
    steps = parser.parse_args().steps
    torch.set_num_threads(1)
    os.environ["OMP_NUM_THREADS"] = "1"  # of the workers too
    found: dict[str, Any] = {}
    with tempfile.TemporaryDirectory() as folder:
        model = Path(folder) / "tiny"
        make_tiny(model)
        engine = engine_costs(model)
        sync = run(config(steps, workers=None), model, Path(folder) / "sync")
        rates = {"sync": (sync.steps_per_s, predicted(engine, sync, steps, None))}
        for workers in (1, 2):
            measured = run(config(steps, workers), model, Path(folder) / f"async-{workers}").steps_per_s
            rates[f"{workers} workers"] = (measured, predicted(engine, sync, steps, workers))
    print(f"{describe()}, torch {torch.__version__}, one thread per process")
    print(f"{PROMPTS} prompts x {GROUP} responses, {statistics.fmean(sync.lengths):.0f} tokens on average")
    print(f"{'':12}{'measured':>10}{'predicted':>11}{'ratio':>8}   steps/s")
    for name, (measured, foretold) in rates.items():
        print(f"{name:12}{measured:10.3f}{foretold:11.3f}{measured / foretold:8.2f}")
        entry = {"ours": round(measured, 3), "peer": round(foretold, 3), "unit": "steps/s, real and simulated"}
        found[f"runner, {name}"] = entry | {"ratio": round(measured / foretold, 2)}
    print(json.dumps(found))


def config(steps: int, workers: int | None) -> PolicyConfig:
    """`workers` None: synchronous."""
    runner = {"kind": "async", "workers": workers, "ahead": 2, "max_staleness": 1} if workers else {}
    return resolve(
        "policy",
        {
            "steps": steps,
            "rollout": {"prompts_per_step": PROMPTS, "group_size": GROUP, "max_new_tokens": NEW_TOKENS},
            "scaffold": None,
            "runner": runner,
            "checkpoint": {"every": steps},
        },
    )


def run(config: PolicyConfig, model: Path, out: Path) -> Timed:
    tokenizer = load_tokenizer(model)
    prompts = prepare_prompts(_examples(), tokenizer, 512, 0)
    sampler, learner = LocalSampler(load_model(model), tokenizer), Learner(load_model(model), config)
    parts = Parts(config, prompts, tokenizer, sampler, learner, RunMonitor(Spool(out / "events.jsonl")), out)
    asynchronous = config.runner.kind == "async"
    loop = AsyncPolicyLoop(parts, RayFleet(config, model)) if asynchronous else PolicyLoop(parts)
    timed = Timed(loop)
    loop.run()
    return timed


def engine_costs(model: Path) -> dict[str, float]:
    """Seconds of a decoding step without its responses, of each response in it, and of reading a prompt."""
    tokenizer = load_tokenizer(model)
    sampler = LocalSampler(load_model(model), tokenizer)
    sampler._stop_ids = frozenset()  # every response has all its tokens
    prompt = prepare_prompts(_examples(), tokenizer, 512, 0).train[0].tokens

    def seconds(responses: int, tokens: int) -> float:
        requests = [SampleRequest(prompt, tokens, seed=i) for i in range(responses)]
        took = []
        for _ in range(5):
            started = time.perf_counter()
            sampler.sample(requests)
            took.append(time.perf_counter() - started)
        return statistics.median(took)

    start = seconds(GROUP, 1)
    one, all_ = ((seconds(n, NEW_TOKENS) - seconds(n, 1)) / (NEW_TOKENS - 1) for n in (1, GROUP))
    response = max(0.0, (all_ - one) / (GROUP - 1))
    return {"step_s": one - response, "response_s": response, "start_s": start}


def predicted(engine: dict[str, float], sync: Timed, steps: int, workers: int | None) -> float:
    """Steps per second after the warm-up. The synchronous loop samples a whole step as one batch, in one process."""
    slots = GROUP if workers else PROMPTS * GROUP
    simulation = Simulation.model_validate(
        {
            "steps": steps,
            "warmup_steps": WARMUP,
            "batch": {"prompts": PROMPTS, "group_size": GROUP},
            "schedule": {"policies": ["urb" if workers else "sync"], "ahead": 2, "whole_groups": bool(workers)},
            "cluster": {"devices": (workers or 1) + 1, "learner_devices": 1, "apart": True},
            "engine": engine | {"slots": slots, "batching": "static"},
            "lengths": {"measured": sync.lengths},
            "latency": {"median_s": 0.0},
            "learner": {
                "step_s": statistics.fmean(sync.update_s),
                "token_s": 0.0,
                "push_s": statistics.fmean(sync.push_s),
            },
        }
    )
    record = simulate(simulation, "urb" if workers else "sync", Draws(simulation))
    return (steps - WARMUP) / (record.done_at[-1] - record.done_at[WARMUP - 1])


def _examples() -> list[Example]:
    verifier = VerifierSpec(name="must_contain", args={"texts": ["e"], "match": "any"})
    rubric = Rubric(criteria=(Criterion(id="e", text="Uses the letter e", points=1.0, verifier=verifier),))
    return [
        Example(key=f"row-{i}", prompt=(Message(role="user", content=f"Say something about {i}."),), rubric=rubric)
        for i in range(16)
    ]


if __name__ == "__main__":
    main()
