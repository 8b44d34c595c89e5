"""The rules for every recipe that learns from stored texts, with adapters and without. See also `test_every_recipe`."""

from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import pytest
import torch

from trainer import checkpoints
from trainer.contracts import Example
from trainer.loops.registry import make_stage
from trainer.monitors import RunMonitor, Spool

from ...running import run
from ..conftest import events_of, metrics_of
from ..texts import demonstrations, make_config, preferences, write_examples


@dataclass(frozen=True)
class Case:
    recipe: str
    examples: Callable[..., list[Example]]
    changes: dict[str, Any] = field(default_factory=dict)

    def __str__(self) -> str:
        return "-".join([self.recipe, *self.changes])


ADAPTERS = {"model": {"name": "tiny"}}
CASES = [
    Case("sft", demonstrations),
    Case("sft", demonstrations, ADAPTERS),
    Case("reward_model", preferences),
    Case("reward_model", preferences, ADAPTERS),
    Case("dpo", preferences),
    Case("dpo", preferences, ADAPTERS),
]


@pytest.fixture(params=CASES, ids=str)
def case(request: Any) -> Case:
    return request.param


@pytest.fixture
def data(case: Case, tmp_path: Path) -> Path:
    return write_examples(case.examples(9, 3), tmp_path / "data.jsonl")


def test_resumed_it_ends_as_if_it_had_never_been_stopped(
    case: Case, data: Path, tiny_dir: Path, tmp_path: Path
) -> None:
    config, whole, halves = make_config(case.recipe, **case.changes), tmp_path / "whole", tmp_path / "halves"
    assert run(config, data, tiny_dir, whole)

    class Killed(BaseException):
        """Ends the run like a signal, so no code of the run may handle it."""

    def killed_at_two(job: Any) -> Any:
        stage = make_stage(job)
        step = stage.step

        def stepped(number: int, tell: Any) -> None:
            if number == 3:
                raise Killed
            step(number, tell)

        stage.step = stepped  # type: ignore[method-assign]
        return stage

    with pytest.raises(Killed):
        run(config, data, tiny_dir, halves, make=killed_at_two)
    assert checkpoints.steps(halves / "checkpoints")[-1] == 2
    assert run(config, data, tiny_dir, halves, resume=True)
    assert metrics_of(halves) == metrics_of(whole)
    one, two = (checkpoints.load(folder / "checkpoints" / "step-000004") for folder in (whole, halves))
    assert one.state["order"] == two.state["order"]
    for owner, tensors in one.tensors.items():
        assert tensors.keys() == two.tensors[owner].keys()
        assert all(torch.equal(value, two.tensors[owner][name]) for name, value in tensors.items())


def test_a_stop_in_the_middle_of_a_step_leaves_the_step_before_it(
    case: Case, data: Path, tiny_dir: Path, tmp_path: Path
) -> None:
    config = make_config(case.recipe, **case.changes)
    monitor = RunMonitor(Spool(tmp_path / "run" / "events.jsonl"))

    def stopped_at_three(job: Any) -> Any:
        stage = make_stage(job)
        step = stage.step

        def stepped(number: int, tell: Any) -> None:
            if number == 3:
                monitor.request_stop()
            step(number, tell)

        stage.step = stepped  # type: ignore[method-assign]
        return stage

    assert run(config, data, tiny_dir, tmp_path / "run", monitor=monitor, make=stopped_at_three)
    assert events_of(tmp_path / "run")[-1].data.state == "stopped"
    assert run(config, data, tiny_dir, tmp_path / "run", resume=True)
    assert run(config, data, tiny_dir, tmp_path / "whole")
    assert metrics_of(tmp_path / "run") == metrics_of(tmp_path / "whole")


def test_a_number_that_is_not_finite_never_reaches_the_weights(
    case: Case, data: Path, tiny_dir: Path, tmp_path: Path
) -> None:
    def poisoned(job: Any) -> Any:
        stage = make_stage(job)
        with torch.no_grad():
            next(iter(stage._learner.parameters.values())).fill_(float("nan"))  # type: ignore[attr-defined]
        return stage

    config = make_config(case.recipe, **case.changes | {"evaluation": {"max_examples": 0}})
    assert not run(config, data, tiny_dir, tmp_path / "run", make=poisoned)
    last = events_of(tmp_path / "run")[-1].data
    assert last.state == "failed" and "is not a finite number at step 1" in last.reason
    assert (tmp_path / "run" / "offending-step-000001.jsonl").read_text().startswith('{"key": "row-')
