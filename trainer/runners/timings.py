"""The file in a run's folder with the times of its workers and its learner, for `python -m trainer simulate --from-run`."""

import json
import os
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any, BinaryIO

from trainer.config import OnPolicyConfig

TIMINGS = "timings.jsonl"


class Timings:
    """Writes one JSON object a line: the rules whenever the run begins or continues, then the seconds of each step.

    These are only timings: if a line cannot be written, as on a full disk, it is left out, and `warn` is called once.
    """

    def __init__(self, path: Path, warn: Callable[[str], None]) -> None:
        self._path, self._warn, self._warned = path, warn, False

    def begin(self, config: OnPolicyConfig) -> None:
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
        try:
            with self._path.open("ab+") as file:
                file.write(f"{_unended(file)}{json.dumps(row)}\n".encode())
        except OSError as error:
            if not self._warned:
                self._warned = True
                self._warn(f"{self._path.name} lacks steps, so that the run may not be simulated: {error.strerror}")


def _unended(file: BinaryIO) -> str:
    """A line break if the last line was cut off; else empty."""
    if not file.seek(0, os.SEEK_END):
        return ""
    file.seek(-1, os.SEEK_END)
    return "" if file.read(1) == b"\n" else "\n"
