"""The runs of a recipe: each in its own folder, in several processes, and never done twice."""

import json
import os
import re
import signal
import threading
import time
from collections.abc import Callable, Iterable, Mapping, Sequence
from concurrent.futures import FIRST_COMPLETED, Future, ProcessPoolExecutor, wait
from dataclasses import dataclass, field
from multiprocessing import get_context
from pathlib import Path
from typing import Any

from trainer.config import RECIPES, resolve
from trainer.config.recipe import RecipeConfig
from trainer.contracts import Example, jsonlines
from trainer.judges.base import BaseSpec
from trainer.rewards.access import Access, JudgeAccess, local_judge

_POLL_S = 1.0
_TAIL_BYTES = 20_000


class SettingsChanged(ValueError):
    """The folder holds a run with other settings."""


@dataclass(frozen=True)
class Used:
    """The output of an earlier run of the same seed: it exists once `result` does. `asked_as` is the judge's spec if it is used as a judge."""

    arm: str
    result: Path
    model: Path
    asked_as: BaseSpec | None = None


@dataclass(frozen=True)
class ArmJob:
    arm: str
    seed: int
    config: dict[str, Any]
    """The raw config, as `python -m trainer run` takes it."""
    folder: Path
    data: Path
    model: Path
    recipe: str = "policy"
    measures: tuple[str, ...] = ()
    """Measures that are read off the run's curves; if empty, those of its policy's answers after the last step are read."""
    uses: Mapping[str, Used] = field(default_factory=dict)
    """The outputs it uses, by the role of a slot or, for judges, by the path of their name in the config."""

    @property
    def models(self) -> dict[str, Path]:
        """Folders by role of a slot, without judges, because these are asked."""
        used = {role: used.model for role, used in self.uses.items() if used.asked_as is None}
        return {"base": self.model} | used

    @property
    def waits(self) -> bool:
        return not all(used.result.exists() for used in self.uses.values())

    @property
    def result(self) -> Path:
        """The file of the result, written last: if it is there, the run is over."""
        return self.folder / "result.json"

    @property
    def steps(self) -> int:
        return int(self.config["steps"])

    def steps_done(self) -> int:
        """The number of finished steps, read from the end of the run's events."""
        if self.result.exists():
            return self.steps
        events = self.folder / "events.jsonl"
        if not events.exists():
            return 0
        with events.open("rb") as file:
            file.seek(max(0, events.stat().st_size - _TAIL_BYTES))
            found = re.findall(rb'"step":\s*(\d+)', file.read())
        return min(self.steps, max(map(int, found), default=0))


def write_examples(file: Path, rows: Iterable[Example]) -> None:
    """Write the rows as JSON Lines; the file is complete or absent."""
    partial = file.with_suffix(".partial")
    partial.write_text("".join(f"{row.canonical()}\n" for row in rows))
    partial.replace(file)


def prepare(jobs: Sequence[ArmJob]) -> None:
    """Make folders with the configs. Raises SettingsChanged if a folder was made for another config."""
    for job in jobs:
        job.folder.mkdir(parents=True, exist_ok=True)
        file, content = job.folder / "config.json", json.dumps(job.config, indent=1, sort_keys=True)
        if file.exists() and file.read_text() != content:
            raise SettingsChanged(f"{job.folder} holds a run with other settings; delete it, or give another --out")
        file.write_text(content)


def perform(jobs: Sequence[ArmJob], processes: int, tell: Callable[[str], None]) -> list[str]:
    """Do every job that has no result yet, with a line of progress now and then; returns the failures, one line each. A job that uses
    another's model begins when that one has its result, and never if there is none.
    """
    left = [job for job in jobs if not job.result.exists()]
    if not left:
        return []
    begins = (os.getpid(), max(1, len(os.sched_getaffinity(0)) // processes))
    pool = ProcessPoolExecutor(processes, mp_context=get_context("spawn"), initializer=_begin, initargs=begins)
    futures: dict[Future[str], ArmJob] = {}
    progress = _RunsProgress(jobs, tell)
    try:
        while _submitted(pool, left, futures):
            wait([future for future in futures if not future.done()], _POLL_S, FIRST_COMPLETED)
            progress.show()
    except KeyboardInterrupt:
        tell("stopped; run the same command again to continue from here")
        os._exit(130)  # the processes notice it and end
    pool.shutdown()
    found = [(job, problem) for future, job in futures.items() if (problem := _problem(future))]
    return [f"{job.arm}, seed {job.seed}: {problem}" for job, problem in found + [(job, _unmet(job)) for job in left]]


def _submitted(pool: ProcessPoolExecutor, left: list[ArmJob], futures: dict[Future[str], ArmJob]) -> bool:
    """Submit all jobs that wait for no other run, and take them off the list; returns whether any run is under way."""
    under_way = any(not future.done() for future in futures)  # before looking at the results that they write
    ready = [job for job in left if not job.waits]
    futures.update((pool.submit(run, job), job) for job in ready)
    left[:] = [job for job in left if job not in ready]
    return under_way or bool(ready)


def _unmet(job: ArmJob) -> str:
    missing = ", ".join(sorted({used.arm for used in job.uses.values() if not used.result.exists()}))
    return f"not started: it uses the model of {missing}, and that run has no result for this seed"


def run(job: ArmJob) -> str:
    """Bring one run to its result, from its last checkpoint if it has one. Returns why it failed, or an empty text."""
    from trainer.loops.run import run_recipe
    from trainer.loops.session.stage import StageJob as RunJob
    from trainer.monitors import RunMonitor, Spool

    from .measures import of_responses, of_run

    no_bars()
    config, events = resolve(job.recipe, job.config), job.folder / "events.jsonl"
    monitor = RunMonitor(Spool(events))
    access = Access(_judges(job, config))
    run_job = RunJob(RECIPES[job.recipe], config, job.data, job.models, job.folder, monitor, access=access)
    ended_well = run_recipe(run_job, True)
    monitor.close()
    if not ended_well:
        return _last_reason(events)
    found = of_run(events, job.measures) if job.measures else of_responses(events)
    partial = job.result.with_suffix(".partial")
    partial.write_text(json.dumps(found))
    partial.replace(job.result)
    return ""


def _judges(job: ArmJob, config: RecipeConfig) -> dict[str, JudgeAccess]:
    """The judges that earlier runs have trained, by the name that the config gives them."""
    asked = {slot.path: slot.name for slot in RECIPES[job.recipe].filled(config)}
    return {
        asked[role]: local_judge(used.asked_as, str(used.model))
        for role, used in job.uses.items()
        if used.asked_as is not None
    }


def no_bars() -> None:
    """Switch off transformers' progress bars, which would run through our lines of progress."""
    from transformers.utils import logging

    logging.disable_progress_bar()


class _RunsProgress:
    """Writes a line whenever another run is done, and every half minute: steps done, and time left at the speed since the start."""

    def __init__(self, jobs: Sequence[ArmJob], tell: Callable[[str], None]) -> None:
        self._jobs, self._tell = jobs, tell
        self._total = sum(job.steps for job in jobs)
        self._began, self._first = time.monotonic(), sum(job.steps_done() for job in jobs)
        self._runs, self._told = -1, 0.0

    def show(self) -> None:
        runs, now = sum(job.result.exists() for job in self._jobs), time.monotonic()
        if runs == self._runs and now - self._told < 30.0:
            return
        self._runs, self._told = runs, now
        done = sum(job.steps_done() for job in self._jobs)
        line = f"{runs} of {len(self._jobs)} runs, {done:,} of {self._total:,} steps"
        if done > self._first:
            seconds = (now - self._began) / (done - self._first) * (self._total - done)
            line += f"; about {seconds / 60:.0f} min left" if seconds > 90 else f"; about {seconds:.0f} s left"
        self._tell(line)


def _begin(parent: int, threads: int) -> None:
    """Prepare a process before it loads torch, as every command of the trainer does, and end it when its parent has ended."""
    from trainer.process import settle

    os.environ["OMP_NUM_THREADS"] = str(threads)
    settle()
    signal.signal(signal.SIGINT, signal.SIG_IGN)

    def watch() -> None:
        while os.getppid() == parent:
            time.sleep(0.5)
        os._exit(1)

    threading.Thread(target=watch, daemon=True).start()


def _problem(future: "Future[str]") -> str:
    error = future.exception()
    return f"{type(error).__name__}: {error}" if error else future.result()


def _last_reason(events: Path) -> str:
    lines = jsonlines.lines(events.read_text(encoding="utf-8"))
    states = [json.loads(line) for line in lines if '"state"' in line]
    reasons = [event["data"]["reason"] for event in states if event["data"]["kind"] == "state"]
    return reasons[-1] if reasons else "it ended without a word"
