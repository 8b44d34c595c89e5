"""(e) A run that is killed continues from its last checkpoint and ends with the same numbers as the undisturbed run."""

import json
import multiprocessing
import os
import signal
from pathlib import Path
from typing import Any

from benchmarks.gpu.rows import MeasureRow, MeasureSetting
from trainer.config import RECIPES, resolve
from trainer.contracts import Criterion, Example, Message, Rubric, RunEvent, VerifierSpec, jsonlines
from trainer.devices import CHOICE
from trainer.monitors import RunMonitor, Spool

STEPS, KILLED_AT = 6, 4
PATIENCE_S = 240.0
PRELOADED = ["trainer.loops.recipes.policy", "trainer.loops.run", "trainer.inference.local", "peft"]


class Deadly(RunMonitor):
    """Ends its process, without unwinding or flushing, when step `step` reports its numbers."""

    step = 0

    def metrics(self, step: int, *given: Any, **options: Any) -> None:
        if step == self.step:
            os.kill(os.getpid(), signal.SIGKILL)
        super().metrics(step, *given, **options)


def run(setting: MeasureSetting) -> list[MeasureRow]:
    from trainer.inference.models import make_tiny, prepare_smollm2

    model = setting.folder / "model"
    (make_tiny if setting.small else prepare_smollm2)(model)
    data = setting.folder / "examples.jsonl"
    data.write_text("".join(f"{example.canonical()}\n" for example in examples()))
    steps = 3 if setting.small else STEPS
    killed_at = 2 if setting.small else KILLED_AT
    whole, broken = setting.folder / "whole", setting.folder / "broken"
    ends = [
        _run(setting, model, data, whole, steps),
        _run(setting, model, data, broken, steps, killed_at=killed_at),
        _run(setting, model, data, broken, steps, resume=True),
    ]
    one, other = metrics_of(whole), metrics_of(broken)
    apart = max((abs(one[place] - other[place]) for place in one.keys() & other.keys()), default=float("inf"))
    return [
        MeasureRow("runs that ended as they should", float(sum(ends)), "of 3", 3.0, "at least"),
        MeasureRow(
            f"numbers of {steps} steps that only one has", float(len(one.keys() ^ other.keys())), "numbers", 0.0
        ),
        MeasureRow("largest difference between the two", apart, "", 0.0, why=f"{len(one)} numbers"),
    ]


def _run(
    setting: MeasureSetting, model: Path, data: Path, out: Path, steps: int, killed_at: int = 0, resume: bool = False
) -> bool:
    """Run in a separate process, forked from one that has loaded everything and has not used the device yet."""
    context = multiprocessing.get_context("forkserver")
    context.set_forkserver_preload(PRELOADED)
    process = context.Process(target=_child, args=(setting.device, model, data, out, steps, killed_at, resume))
    process.start()
    process.join(PATIENCE_S)
    ended = process.exitcode == (-signal.SIGKILL if killed_at else 0)
    process.kill()
    process.join()
    return ended


def _child(device: str, model: Path, data: Path, out: Path, steps: int, killed_at: int, resume: bool) -> None:
    from trainer.loops.run import run_recipe
    from trainer.loops.session.stage import StageJob

    if device == "cpu":
        os.environ[CHOICE] = "cpu"
    config = resolve(
        "policy",
        {
            "steps": steps,
            "rollout": {"prompts_per_step": 2, "group_size": 4, "max_new_tokens": 16},
            "checkpoint": {"every": 1},
            "evaluation": {"every": 0, "max_examples": 0},
        },
    )
    monitor = Deadly(Spool(out / "events.jsonl"))
    monitor.step = killed_at
    ended_well = run_recipe(StageJob(RECIPES["policy"], config, data, {"base": model}, out, monitor), resume)
    monitor.close()
    os._exit(0 if ended_well else 1)


def examples() -> list[Example]:
    """Examples whose good answers use e and a; their rubric needs no judge."""
    criteria = tuple(
        Criterion(
            id=letter,
            text=f"Uses the letter {letter}",
            points=points,
            verifier=VerifierSpec(name="must_contain", args={"texts": [letter], "match": "any"}),
        )
        for letter, points in (("e", 2.0), ("a", 1.0), ("x", -1.0))
    )
    rubric = Rubric(criteria=criteria)
    return [
        Example(key=f"row-{i}", prompt=(Message(role="user", content=f"Say something about {i}."),), rubric=rubric)
        for i in range(8)
    ]


def metrics_of(out: Path) -> dict[tuple[int, str], float]:
    """The last value of each metric at each step, without metrics of time."""
    found: dict[tuple[int, str], float] = {}
    for line in jsonlines.lines((out / "events.jsonl").read_text()):
        event = RunEvent.model_validate(json.loads(line))
        if event.data.kind == "metrics":
            found |= {(event.step, key): value for key, value in event.data.values.items()}
    return {place: value for place, value in found.items() if not place[1].startswith("perf/")}
