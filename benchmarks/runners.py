"""Asynchronous runs beside synchronous ones on the same cores, and beside the simulator's predictions. Tiny model.

For each schedule and number of workers three runs are made, each with another order of the prompts and other draws. The first and the last
calibrate the simulator, as `python -m trainer simulate --from-run` does. The mean of both predictions is that for the run between them, so
that a load of the machine which rises or falls meanwhile is part of the prediction. The error is that of its steps per hour. Beside it are
the error of the prediction from the run's own timings, which is the simulator's alone, and how far the three runs are apart. The
synchronous run has as many threads as there are cores, each process of the others has one; all train on the same prompts.
"""

import argparse
import json
import os
import tempfile
import time
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import torch

from benchmarks import configs
from benchmarks.machine import describe
from trainer.config import RECIPES, PolicyConfig
from trainer.contracts import Criterion, Example, Message, Rubric, VerifierSpec
from trainer.inference.models import make_tiny
from trainer.loops.session.session import Session
from trainer.loops.session.stage import StageJob
from trainer.monitors import RunMonitor, Spool
from trainer.runners.policy import make
from trainer.simulator.config import Simulation
from trainer.simulator.draws import Draws
from trainer.simulator.measured import WARMUP, measured
from trainer.simulator.report import summary
from trainer.simulator.simulate import simulate

STEPS = 40
PROMPTS, GROUP, NEW_TOKENS = 4, 4, 192
WORKERS = (2, 4, 8)
SCHEDULES: dict[str, dict[str, Any]] = {
    "urb": {"policy": "urb", "ahead": 2, "max_staleness": 1},
    "dora": {"policy": "dora", "max_staleness": 2},
}
GOAL = 0.1


@dataclass(frozen=True)
class ScheduleRow:
    """Steps per hour of a run, and the prediction."""

    schedule: str
    workers: int
    real: float
    foretold: float
    itself: float
    """The simulator's number from the run's own timings."""
    apart: float
    """The fastest of the three runs divided by the slowest, minus 1."""

    @property
    def error(self) -> float:
        return self.foretold / self.real - 1


def main() -> None:
    parser = argparse.ArgumentParser(prog="python -m benchmarks.runners", description=__doc__)
    parser.add_argument("--steps", type=int, default=STEPS, help=f"of each run; the first {WARMUP} warm up")
    parser.add_argument("--workers", type=int, nargs="+", default=WORKERS)
    parser.add_argument("--schedules", choices=SCHEDULES, nargs="+", default=list(SCHEDULES))
    options = parser.parse_args()
    if options.steps < WARMUP + 9:
        parser.error(f"--steps must be at least {WARMUP + 9}")
    cores = len(os.sched_getaffinity(0))
    with tempfile.TemporaryDirectory() as folder:
        here = Path(folder)
        make_tiny(here / "tiny")
        torch.set_num_threads(cores)
        sync = synchronous(options.steps, here)
        torch.set_num_threads(1)
        os.environ["OMP_NUM_THREADS"] = "1"  # of the workers too
        rows = []
        for row in asynchronous(options.steps, options.schedules, options.workers, here):
            rows.append(row)
            print(f"{row.schedule}, {row.workers} workers: {row.real:,.0f} steps/h", flush=True)
    report(options.steps, cores, sync, rows)


def asynchronous(steps: int, schedules: Sequence[str], workers: Sequence[int], here: Path) -> Iterator[ScheduleRow]:
    for schedule in schedules:
        for count in workers:
            runner = {"kind": "async", "workers": count} | SCHEDULES[schedule]
            folders = [here / f"{schedule}-{count}-{seed}" for seed in range(3)]
            for seed, folder in enumerate(folders):
                run(config(steps, seed, runner), here / "tiny", folder)
            speeds = [measured(folder).steps_per_hour for folder in folders]
            before, itself, after = map(prediction, folders)
            yield ScheduleRow(schedule, count, speeds[1], (before + after) / 2, itself, max(speeds) / min(speeds) - 1)


def prediction(calibrated: Path) -> float:
    """Predicted steps per hour, from the timings of a run."""
    simulation = Simulation.model_validate(measured(calibrated).simulation)
    draws = Draws(simulation)
    policy = simulation.schedule.policies[0]
    return float(summary(simulation, policy, simulate(simulation, policy, draws), draws)["steps_per_hour"])


def synchronous(steps: int, here: Path) -> float:
    """Steps per hour of a synchronous run."""
    done_at: list[float] = []
    run(config(steps, 1, {}), here / "tiny", here / "sync", done_at)
    return 3600 * (len(done_at) - 1 - WARMUP) / (done_at[-1] - done_at[WARMUP])


def report(steps: int, cores: int, sync: float, rows: Sequence[ScheduleRow]) -> None:
    print(f"{describe()}, torch {torch.__version__}; sync on {cores} threads, the others on one thread per process")
    print(f"{steps} steps of {PROMPTS} prompts x {GROUP} responses of up to {NEW_TOKENS} tokens")
    print(
        f"{'':12}{'workers':>8}{'steps/h':>10}{'over sync':>11}{'foretold':>10}{'error':>8}{'of itself':>11}{'apart':>8}"
    )
    print(f"{'sync':12}{'':>8}{sync:10,.0f}{1:11.2f}")
    found = {}
    for row in rows:
        speeds = f"{row.real:10,.0f}{row.real / sync:11.2f}{row.foretold:10,.0f}"
        print(
            f"{row.schedule:12}{row.workers:>8}{speeds}{row.error:+8.1%}{row.itself / row.real - 1:+11.1%}{row.apart:8.1%}"
        )
        name = f"{row.schedule} with {row.workers} workers"
        found[f"runner, {name} over sync"] = entry(row.real, sync, "steps/h on the same cores")
        found[f"runner, {name} as foretold"] = entry(row.real, row.foretold, "steps/h, real and simulated")
    worst = max(abs(row.error) for row in rows)
    print(f"largest error {worst:.1%}; at most {GOAL:.0%} is the goal, which is {'met' if worst <= GOAL else 'missed'}")
    print(json.dumps(found))


def entry(ours: float, peer: float, unit: str) -> dict[str, Any]:
    return {"ours": round(ours, 1), "peer": round(peer, 1), "unit": unit, "ratio": round(ours / peer, 2)}


def config(steps: int, seed: int, runner: dict[str, Any]) -> PolicyConfig:
    return configs.policy(
        {
            "steps": steps,
            "seed": seed,
            "rollout": {"prompts_per_step": PROMPTS, "group_size": GROUP, "max_new_tokens": NEW_TOKENS},
            "scaffold": None,
            "runner": runner,
            "evaluation": {"every": 0},
            "checkpoint": {"every": steps},
        },
    )


def run(config: PolicyConfig, model: Path, out: Path, done_at: list[float] | None = None) -> None:
    """Train a run; `done_at` gets the moment at which each step was done."""
    out.mkdir()
    examples = out / "examples.jsonl"
    examples.write_text("".join(f"{example.canonical()}\n" for example in _examples()))
    job = StageJob(RECIPES["policy"], config, examples, {"base": model}, out, RunMonitor(Spool(out / "events.jsonl")))
    stage: Any = make(job)
    updated = stage.collector.updated

    def note(step: int) -> None:
        updated(step)
        if done_at is not None:
            done_at.append(time.perf_counter())

    stage.collector.updated = note
    try:
        Session(job, stage).run()
    finally:
        stage.close()


def _examples() -> list[Example]:
    verifier = VerifierSpec(name="must_contain", args={"texts": ["e"], "match": "any"})
    rubric = Rubric(criteria=(Criterion(id="e", text="Uses the letter e", points=1.0, verifier=verifier),))
    return [
        Example(key=f"row-{i}", prompt=(Message(role="user", content=f"Say something about {i}."),), rubric=rubric)
        for i in range(16)
    ]


if __name__ == "__main__":
    main()
