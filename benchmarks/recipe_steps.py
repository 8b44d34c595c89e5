"""Steps of one of our recipes in turns with another program's, without the server and without checkpoints."""

import tempfile
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from benchmarks.turns import TurnWaiting
from trainer.config import RECIPES
from trainer.contracts import Example
from trainer.loops.registry import make_stage
from trainer.loops.session.session import Session, StepTell
from trainer.loops.session.stage import StageJob
from trainer.monitors import RunMonitor, Spool


def take_steps(
    recipe: str, config: Any, model: Path, examples: Sequence[Example], steps: int, turns: TurnWaiting
) -> None:
    """The first `steps` of a run of `recipe` on `examples`, each in its turn."""
    with tempfile.TemporaryDirectory() as folder:
        data, run_dir = Path(folder) / "examples.jsonl", Path(folder) / "run"
        data.write_text("".join(example.canonical() + "\n" for example in examples))
        job = StageJob(
            RECIPES[recipe], config, data, {"base": model}, run_dir, RunMonitor(Spool(run_dir / "events.jsonl"))
        )
        stage = make_stage(job)
        session = Session(job, stage)
        stage.open(0)
        for number in range(1, steps + 1):
            turns.begin()
            stage.step(number, StepTell(session, number))
            turns.end()
