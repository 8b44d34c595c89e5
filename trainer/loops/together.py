"""Several runs of one base model in one process: each gives the numbers that it would give alone, and they take turns by steps.

Each has its own thread, in which `run_recipe` goes from its job to its end as usual: with its own events, checkpoints, stop and failure.
What they read is read once (`trainer.inference.common`), and one of them computes at a time (`trainer.time_sharing`), so every number
of a run is to the last bit that of the run alone.
"""

import importlib
import threading
from collections.abc import Callable, Sequence
from contextlib import suppress
from pathlib import Path

from trainer.arithmetic import settle_arithmetic
from trainer.inference.common import ahead, in_common
from trainer.monitors import RunMonitor
from trainer.process import one_heap
from trainer.time_sharing import TurnTaking

from .prompts.data import read_examples
from .registry import STAGES, make_stage
from .run import run_recipe
from .session.stage import Make, StageJob


def run_together(
    jobs: Sequence[tuple[StageJob, bool]],
    steps: int = 1,
    make: Make = make_stage,
    after: Callable[[int, bool], object] = lambda place, ended_well: None,
) -> list[bool]:
    """Run jobs, each with whether it continues from a checkpoint; `steps` make a turn. Returns for each whether it ended well, as
    `run_recipe` says.

    When a run has ended, `after` is called with its place and its result, while the others continue.
    """
    one_heap()
    turns = TurnTaking([_in_a_hurry(job.monitor) for job, _ in jobs], steps)
    ended = [False] * len(jobs)

    def carry_out(run: int) -> None:
        with turns.of(run):
            ended[run] = run_recipe(*jobs[run], make)
        after(run, ended[run])

    with in_common():
        threads = [threading.Thread(target=carry_out, args=(run,), name=f"run {run}") for run in range(len(jobs))]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
    return ended


def load_libraries(*more: str) -> None:
    """Import what takes seconds, and modules `more`, before processes are copied from this one."""
    settle_arithmetic(1)  # a copy would wait for OpenMP's other threads, which are not copied
    for module in ("transformers", "peft", *more):
        importlib.import_module(module)


def read_ahead(recipe: str, base: Path, dtype: str, examples: Path) -> None:
    """Read and load what runs of this recipe have in common, for processes that are then copied from this one.

    What cannot be read is left to the runs, each of which says so itself.
    """
    from trainer.inference.models import load_model, load_tokenizer

    load_libraries(STAGES[recipe].partition(":")[0])
    with ahead(), suppress(Exception):
        read_examples(examples)
        load_tokenizer(base)
        load_model(base, dtype)


def _in_a_hurry(monitor: RunMonitor) -> Callable[[], bool]:
    return lambda: monitor.command != "continue"
