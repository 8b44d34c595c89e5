"""Synchronous and asynchronous runs of the same work, and what the simulator foretells for both. Tiny model, one process each.

Both train on the same prompts in the same order with the same seeds, by U-RB for the asynchronous one: whether workers that
sample while the learner trains are worth their copies of the weights depends on how much there is to overlap, and with two
cores little is gained. The simulator is given the costs of the parts (decoding, updating, pushing, lengths), taken from the
parts alone and from the synchronous run; the asynchronous run is foretold before it is made.
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
from trainer.config import RECIPES, PolicyConfig, resolve
from trainer.contracts import Criterion, Example, Message, Rubric, VerifierSpec
from trainer.inference.local import LocalSampler
from trainer.inference.models import load_model, load_tokenizer, make_tiny
from trainer.inference.sampling import SampleRequest
from trainer.loops.data import prepare_prompts
from trainer.loops.policy import PolicyStage
from trainer.loops.session import Session
from trainer.loops.stage import Job
from trainer.monitors import RunMonitor, Spool
from trainer.runners.policy import make
from trainer.simulator.config import Simulation
from trainer.simulator.draws import Draws
from trainer.simulator.simulate import simulate

STEPS, WARMUP = 12, 3
PROMPTS, GROUP, NEW_TOKENS = 2, 4, 96
WORKERS = 1


class Timed:
    """The seconds that a loop spends updating and pushing, when its steps were done, and how long its responses were."""

    def __init__(self, stage: PolicyStage) -> None:
        self.update_s: list[float] = []
        self.push_s: list[float] = []
        self.done_at: list[float] = []
        self.lengths: list[int] = []
        self._wrap(stage.updater, "run", self.update_s, self._note_lengths)
        self._wrap(stage.collector, "updated", self.push_s, lambda *_: self.done_at.append(time.perf_counter()))

    def _wrap(self, owner: Any, name: str, seconds: list[float], after: Any) -> None:
        call = getattr(owner, name)

        def timed(*arguments: Any) -> Any:
            started = time.perf_counter()
            result = call(*arguments)
            seconds.append(time.perf_counter() - started)
            after(*arguments)
            return result

        setattr(owner, name, timed)

    def _note_lengths(self, trajectories: Sequence[Any], *_: Any) -> None:
        self.lengths += [trajectory.length for trajectory in trajectories]

    @property
    def steps_per_s(self) -> float:
        return (len(self.done_at) - 1 - WARMUP) / (self.done_at[-1] - self.done_at[WARMUP])


def main() -> None:
    parser = argparse.ArgumentParser(prog="python -m benchmarks.runners", description=__doc__)
    parser.add_argument("--steps", type=int, default=STEPS, help=f"of each run; the first {WARMUP} warm up")
    steps = parser.parse_args().steps
    if steps < WARMUP + 2:
        parser.error(f"--steps must be at least {WARMUP + 2}")
    torch.set_num_threads(1)
    os.environ["OMP_NUM_THREADS"] = "1"  # of the worker too
    with tempfile.TemporaryDirectory() as folder:
        model = Path(folder) / "tiny"
        make_tiny(model)
        engine = engine_costs(model)
        sync = run(config(steps, asynchronous=False), model, Path(folder) / "sync")
        foretold = {kind: predicted(steps, engine, sync, kind == "async") for kind in ("sync", "async")}
        real = {"sync": sync.steps_per_s}
        real["async"] = run(config(steps, asynchronous=True), model, Path(folder) / "async").steps_per_s
    report(steps, real, foretold, statistics.fmean(sync.lengths))


def report(steps: int, real: dict[str, float], foretold: dict[str, float], length: float) -> None:
    print(f"{describe()}, torch {torch.__version__}, one thread per process")
    print(f"{steps} steps of {PROMPTS} prompts x {GROUP} responses, {length:.0f} tokens on average; {WORKERS} worker")
    print(f"{'steps/s':10}{'real':>10}{'simulated':>12}{'ratio':>8}")
    for kind in real:
        print(f"{kind:10}{real[kind]:10.3f}{foretold[kind]:12.3f}{real[kind] / foretold[kind]:8.2f}")
    speed_up, expected = real["async"] / real["sync"], foretold["async"] / foretold["sync"]
    print(f"{'speed-up':10}{speed_up:10.2f}{expected:12.2f}{speed_up / expected:8.2f}")
    found = {
        "runner, async over sync": entry(real["async"], real["sync"], "steps/s on the same work"),
        "runner, sync as foretold": entry(real["sync"], foretold["sync"], "steps/s, real and simulated"),
        "runner, async as foretold": entry(real["async"], foretold["async"], "steps/s, real and simulated"),
    }
    print(json.dumps(found))


def entry(ours: float, peer: float, unit: str) -> dict[str, Any]:
    return {"ours": round(ours, 3), "peer": round(peer, 3), "unit": unit, "ratio": round(ours / peer, 2)}


def config(steps: int, asynchronous: bool) -> PolicyConfig:
    runner = {"kind": "async", "workers": WORKERS, "ahead": 2, "max_staleness": 1} if asynchronous else {}
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
    out.mkdir()
    examples = out / "examples.jsonl"
    examples.write_text("".join(f"{example.canonical()}\n" for example in _examples()))
    job = Job(RECIPES["policy"], config, examples, {"base": model}, out, RunMonitor(Spool(out / "events.jsonl")))
    stage = make(job)
    timed = Timed(stage)
    try:
        Session(job, stage).run()
    finally:
        stage.close()
    return timed


def engine_costs(model: Path) -> dict[str, float]:
    """Seconds of a decoding step without its responses, of each response in it, and of reading a prompt."""
    tokenizer = load_tokenizer(model)
    sampler = LocalSampler(load_model(model), tokenizer)
    sampler._stop_ids = frozenset()  # every response has all its tokens
    prompt = prepare_prompts(_examples(), tokenizer, resolve("policy", {})).train[0].tokens

    def seconds(responses: int, tokens: int) -> float:
        requests = [SampleRequest(prompt, tokens, seed=i) for i in range(responses)]
        took = []
        for _ in range(3):
            started = time.perf_counter()
            sampler.sample(requests)
            took.append(time.perf_counter() - started)
        return statistics.median(took)

    seconds(GROUP, 1)  # to warm up
    start = seconds(GROUP, 1)
    one, all_ = ((seconds(n, NEW_TOKENS) - seconds(n, 1)) / (NEW_TOKENS - 1) for n in (1, GROUP))
    response = max(0.0, (all_ - one) / (GROUP - 1))
    return {"step_s": one - response, "response_s": response, "start_s": start}


def predicted(steps: int, engine: dict[str, float], sync: Timed, asynchronous: bool) -> float:
    """Steps per second after the warm-up. The synchronous loop samples a whole step as one batch, in one process."""
    slots = GROUP if asynchronous else PROMPTS * GROUP
    policy = "urb" if asynchronous else "sync"
    simulation = Simulation.model_validate(
        {
            "steps": steps,
            "warmup_steps": WARMUP,
            "batch": {"prompts": PROMPTS, "group_size": GROUP},
            "schedule": {"policies": [policy], "ahead": 2, "whole_groups": asynchronous},
            "cluster": {"devices": WORKERS + 1, "learner_devices": 1, "apart": True},
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
    record = simulate(simulation, policy, Draws(simulation))
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
