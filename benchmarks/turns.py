"""Two processes make the same updates, one at a time in turns: A B B A. Other work on the machine slows both for a while, so
the ratio of neighbours is reliable even if the times are not.
"""

import json
import os
import subprocess
import sys
import time
from collections.abc import Sequence
from typing import Any

import torch

from benchmarks.trainer_side import DEVICE, peak_mib, reset_peak

Update = dict[str, float]
"""One update: `s` of wall time, `cpu_s` of the process, `mib` at most during the update."""


class TurnWaiting:
    """Runs in the process of a side: waits for its turn before each update and reports the cost of the update.

    Other output of the process goes to the standard error.
    """

    def __init__(self) -> None:
        self._answers = os.fdopen(os.dup(1), "w")
        os.dup2(2, 1)
        self._began = (0.0, 0.0)

    def begin(self) -> None:
        if not sys.stdin.readline():
            raise SystemExit("the measurement has ended")
        reset_peak()
        self._began = (time.perf_counter(), time.process_time())

    def end(self) -> None:
        if DEVICE == "cuda":
            torch.cuda.synchronize()
        took = {"s": time.perf_counter() - self._began[0], "cpu_s": time.process_time() - self._began[1]}
        self._answers.write(json.dumps(took | {"mib": peak_mib()}) + "\n")
        self._answers.flush()


def alternate(commands: Sequence[Sequence[str]], updates: int) -> list[list[Update]]:
    """The updates of each command after the first, which warms up. Raises SystemExit if a command ends early."""
    processes = [
        subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True) for command in commands
    ]
    taken: list[list[Update]] = [[] for _ in processes]
    try:
        for number in range(updates + 1):
            order = range(len(processes)) if number % 2 else reversed(range(len(processes)))
            for place in order:
                taken[place].append(_update(processes[place]))
    finally:
        for process in processes:
            process.kill()
            process.communicate()
    return [found[1:] for found in taken]


def _update(process: "subprocess.Popen[str]") -> Update:
    assert process.stdin and process.stdout  # noqa: S101 - both are pipes
    process.stdin.write("\n")
    process.stdin.flush()
    answer = process.stdout.readline()
    if not answer:
        raise SystemExit(f"{' '.join(map(str, process.args))} ended with status {process.wait()}")  # type: ignore[arg-type]
    found: dict[str, Any] = json.loads(answer)
    return found
