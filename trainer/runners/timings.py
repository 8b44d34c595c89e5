"""The file in a run's folder with what its workers and its learner spent, for `python -m trainer simulate --from-run`."""

import json
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from trainer.config import PolicyConfig

TIMINGS = "timings.jsonl"


class Timings:
    """One JSON object a line: what was asked for whenever the run begins or goes on, then the seconds of each step."""

    def __init__(self, path: Path) -> None:
        self._path = path

    def begin(self, config: PolicyConfig) -> None:
        rollout, runner, sampler = config.rollout, config.runner, config.sampler
        asked = {
            "prompts": rollout.prompts_per_step,
            "group_size": rollout.group_size,
            "max_new_tokens": rollout.max_new_tokens,
            "slots": sampler.max_batch,
            "sampler": sampler.kind,
            "runner": runner.model_dump(mode="json"),
        }
        self._write({"asked": asked})

    def step(self, step: int, lengths: Sequence[int], seconds: dict[str, Any]) -> None:
        self._write({"step": step, "lengths": list(lengths), **seconds})

    def _write(self, row: dict[str, Any]) -> None:
        with self._path.open("a") as file:
            file.write(f"{json.dumps(row)}\n")
