"""Stop in the middle of a long step: only the current micro-batch is finished, and there is a checkpoint."""

from collections.abc import Callable
from pathlib import Path
from typing import Any, cast

import pytest
import torch

from trainer import checkpoints
from trainer.loops.session.errors import StopRequested

from ..conftest import events_of, metrics_of, small_config

LONG: dict[str, Any] = {
    "optim": {"lr": 1e-2, "minibatch_size": 4, "micro_batch_tokens": 64},
    "objective": {"name": "grpo", "kl_beta": 0.1},
    "rollout": {"prompts_per_step": 2, "group_size": 4, "max_new_tokens": 16},
    "scaffold": None,
}
"""Two updates a step, of several micro-batches each."""


class Passes:
    """Counts the passes of step 2 after `updates` of its updates. The first of these passes asks for a stop."""

    def __init__(self, session: Any, updates: int) -> None:
        self.after, self.updates = 0, 0
        learner = session.stage.parts.learner
        measure, end_update = learner.measure, learner.end_update

        def measuring(*arguments: Any, **options: Any) -> Any:
            if session.step == 1 and torch.is_grad_enabled() and self.updates == updates:
                self.after += 1
                session.job.monitor.request_stop()
            return measure(*arguments, **options)

        def ending() -> None:
            self.updates += session.step == 1
            end_update()

        learner.measure, learner.end_update = measuring, ending


@pytest.mark.parametrize("updates", [0, 1], ids=["in its first update", "in its second"])
def test_a_step_is_given_up_within_a_micro_batch_and_made_again(
    updates: int, make_loop: Callable[..., Any], tmp_path: Path
) -> None:
    config = small_config(steps=3, **LONG)
    loop = make_loop(config)
    passes = Passes(loop, updates)
    with pytest.raises(StopRequested):
        loop.run()
    assert (loop.step, passes.after, passes.updates) == (1, 1, updates)
    saved = checkpoints.load(tmp_path / "run" / "checkpoints" / "step-000001")
    make_loop(small_config(steps=1, **LONG), tmp_path / "one").run()
    for owner, tensors in checkpoints.load(tmp_path / "one" / "checkpoints" / "step-000001").tensors.items():
        assert all(torch.equal(tensor, saved.tensors[owner][name]) for name, tensor in tensors.items()), owner
    again, straight = make_loop(config), make_loop(config, tmp_path / "straight")
    assert again.resume() and again.step == 1
    again.run()
    straight.run()
    assert metrics_of(tmp_path / "run") == metrics_of(tmp_path / "straight")


def test_a_stop_in_an_evaluation_leaves_nothing_out_of_the_step_before_it(
    make_loop: Callable[..., Any], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Its machine, its spans and its tokens, which count towards a limit, are told though its evaluation was given up."""
    loop = make_loop(small_config(steps=4))
    evaluate = loop.stage.evaluate

    def stopping(step: int, tell: Any) -> dict[str, float]:
        if step == 2:
            loop.job.monitor.request_stop()
        return cast(dict[str, float], evaluate(step, tell))

    monkeypatch.setattr(loop.stage, "evaluate", stopping)
    with pytest.raises(StopRequested):
        loop.run()
    assert loop.step == 2
    told: dict[int, set[str]] = {1: set(), 2: set()}
    for event in events_of(tmp_path / "run"):
        if event.step in told and event.data.kind == "metrics":
            told[event.step] |= event.data.values.keys()
    assert "perf/machine_busy" in told[1] and told[1] - {"perf/saving_s"} <= told[2]
    assert {event.step for event in events_of(tmp_path / "run") if event.data.kind == "spans"} == {1, 2}


def test_a_step_of_one_update_keeps_no_copy_for_it(make_loop: Callable[..., Any]) -> None:
    loop = make_loop(small_config(steps=2, optim={"lr": 1e-3}, scaffold=None))
    loop.run()
    assert loop.stage.parts.learner._marked == {}


def test_what_was_marked_comes_back_where_the_moments_were_forgotten_since(make_loop: Callable[..., Any]) -> None:
    loop = make_loop(small_config(steps=1, scaffold=None))
    loop.run()
    learner = loop.stage.parts.learner
    learner.mark()
    learner.forget_moments()
    before = learner.policy()
    learner.mark()
    learner.begin_update()
    for parameter in learner.parameters.values():
        parameter.grad = torch.ones_like(parameter)
    learner.end_update()
    learner.take_back()
    assert learner.optimizer.own_state() == {}
    assert all(torch.equal(weight, before[name]) for name, weight in learner.policy().items())
