"""Parts of a run on the tiny model."""

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from trainer.config import PolicyConfig, resolve
from trainer.contracts import Example, RunEvent

SMALL: dict[str, Any] = {
    "steps": 4,
    "rollout": {"prompts_per_step": 2, "group_size": 4, "max_new_tokens": 8},
    "optim": {"lr": 1e-3, "minibatch_size": 4},
    "evaluation": {"every": 2},
    "checkpoint": {"every": 1, "keep": 9},
}


def small_config(**changes: Any) -> PolicyConfig:
    return resolve("policy", SMALL | changes)


def events_of(run_dir: Path) -> list[RunEvent]:
    return [RunEvent.model_validate_json(line) for line in (run_dir / "events.jsonl").read_text().splitlines()]


def metrics_of(run_dir: Path) -> dict[tuple[int, str], float]:
    """The last value of each metric at each step, without what depends on the clock."""
    found = {}
    for event in events_of(run_dir):
        if event.data.kind == "metrics":
            found |= {(event.step, key): value for key, value in event.data.values.items()}
    return {place: value for place, value in found.items() if not place[1].startswith("perf/")}


@pytest.fixture
def make_loop(tiny_dir: Path, examples: list[Example], tmp_path: Path) -> Callable[..., Any]:
    """A loop whose parts can be replaced before it runs."""
    from trainer.inference.local import LocalSampler
    from trainer.inference.models import load_model, load_tokenizer
    from trainer.loops.data import prepare_prompts
    from trainer.loops.learner import Learner
    from trainer.loops.parts import Parts
    from trainer.loops.policy import PolicyLoop
    from trainer.monitors import RunMonitor, Spool

    def make(config: PolicyConfig, run_dir: Path = tmp_path / "run") -> PolicyLoop:
        tokenizer = load_tokenizer(tiny_dir)
        prompts = prepare_prompts(examples, tokenizer, 512, 10)
        learner = Learner(load_model(tiny_dir), config)
        sampler = LocalSampler(load_model(tiny_dir), tokenizer)
        monitor = RunMonitor(Spool(run_dir / "events.jsonl"))
        return PolicyLoop(Parts(config, prompts, tokenizer, sampler, learner, monitor, run_dir))

    return make
