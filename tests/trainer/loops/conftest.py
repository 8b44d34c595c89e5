"""Parts of a run on the tiny model."""

import shutil
import threading
import time
from collections.abc import Callable, Iterator
from copy import deepcopy
from pathlib import Path
from typing import Any

import pytest

from trainer.config import PolicyConfig, resolve
from trainer.contracts import Example, RunEvent

from ..running import job_of, run
from .numbers import row

SMALL: dict[str, Any] = {
    "steps": 4,
    "rollout": {"prompts_per_step": 2, "group_size": 4, "max_new_tokens": 8},
    "optim": {"lr": 1e-3, "minibatch_size": 4},
    "evaluation": {"every": 2},
    "checkpoint": {"every": 1, "keep": 9},
}


def small_config(**changes: Any) -> PolicyConfig:
    config = resolve("policy", SMALL | changes)
    assert isinstance(config, PolicyConfig)
    return config


def events_of(run_dir: Path) -> list[RunEvent]:
    return [RunEvent.model_validate_json(line) for line in (run_dir / "events.jsonl").read_text().split("\n") if line]


def metrics_of(run_dir: Path) -> dict[tuple[int, str], float]:
    """The last value of each metric at each step, without metrics that depend on the clock."""
    found = {}
    for event in events_of(run_dir):
        if event.data.kind == "metrics":
            found |= {(event.step, key): value for key, value in event.data.values.items()}
    return {place: value for place, value in found.items() if not place[1].startswith("perf/")}


def states(run_dir: Path) -> list[tuple[str, str]]:
    """The states that the run has reported, each with its reason."""
    return [(event.data.state, event.data.reason) for event in events_of(run_dir) if event.data.kind == "state"]


def stopped_when_paused(run_dir: Path) -> Any:
    """A monitor for a run that is to begin: it asks the run to stop as soon as the run has paused. Close it."""
    from trainer.monitors import RunMonitor, Spool

    monitor = RunMonitor(Spool(run_dir / "events.jsonl"))

    def stop() -> None:
        while not any(state == "paused" for state, _ in states(run_dir)):
            time.sleep(0.05)
        monitor.request_stop()

    threading.Thread(target=stop, daemon=True).start()
    return monitor


def stage_recorder() -> tuple[list[Any], Callable[[Any], Any]]:
    """A list, and a function for `run(make=...)` that makes the stage of a job and adds it to the list."""
    from trainer.loops.registry import make_stage

    stages: list[Any] = []

    def make(job: Any) -> Any:
        stages.append(make_stage(job))
        return stages[-1]

    return stages, make


def whole_and_resumed(config: PolicyConfig, data: Path, model: Path, folder: Path, after: int) -> tuple[Path, Path]:
    """A whole run, and a copy of it that was killed after step `after` and continued from there."""
    whole, broken = folder / "whole", folder / "broken"
    assert run(config, data, model, whole)
    shutil.copytree(whole, broken)
    for step in range(after + 1, config.steps + 1):
        (broken / "checkpoints" / f"step-{step:06d}" / "state.json").unlink()
    (broken / "events.jsonl").unlink()
    assert run(config, data, model, broken, resume=True)
    return whole, broken


def sample_first_step(session: Any) -> list[Any]:
    """The scored responses of step 1. Their metrics have been reported."""
    from trainer.loops.session.session import StepTell

    tell = StepTell(session, 1)
    collected = session.stage.collector.collect(1, tell)
    session.stage._note(collected, tell)
    return collected.trajectories


@pytest.fixture(scope="session")
def numbers(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Twelve questions, eight of them to train on. In both splits half of the answers are odd and half even."""
    path = tmp_path_factory.mktemp("numbers") / "examples.jsonl"
    path.write_text("".join(row(number).canonical() + "\n" for number in range(12)))
    return path


@pytest.fixture
def make_loop(
    tiny_dir: Path, tiny_model: Any, tiny_tokenizer: Any, examples: list[Example], examples_file: Path, tmp_path: Path
) -> Iterator[Callable[..., Any]]:
    """A session. The parts of its stage can be replaced before it runs."""
    from trainer.inference.local import LocalSampler
    from trainer.loops.learner.learner import Learner
    from trainer.loops.policy.parts import Parts
    from trainer.loops.prompts.data import prepare_prompts
    from trainer.loops.recipes.policy import PolicyStage
    from trainer.loops.session.session import Session
    from trainer.monitors import RunMonitor, Spool

    made: list[Session] = []

    def make(config: PolicyConfig, run_dir: Path = tmp_path / "run", collector: Any = None) -> Session:
        prompts = prepare_prompts(examples, tiny_tokenizer, config)
        learner = Learner(deepcopy(tiny_model), config)
        sampler = LocalSampler(deepcopy(tiny_model), tiny_tokenizer)
        monitor = RunMonitor(Spool(run_dir / "events.jsonl"))
        job = job_of(config, examples_file, tiny_dir, run_dir, monitor)
        parts = Parts(config, prompts, tiny_tokenizer, sampler, learner, run_dir, tiny_dir)
        stage = PolicyStage(parts, collector(job)) if collector else PolicyStage(parts)
        made.append(Session(job, stage))
        return made[-1]

    yield make
    for session in made:
        session.stage.close()
