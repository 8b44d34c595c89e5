"""WPSM on the tiny model: well-learned responses count for less, and a resumed run has the same weights as a whole one."""

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
import torch

from trainer.config import ConfigInvalid
from trainer.curriculum import PassCounts
from trainer.loops.policy.reports import learned, update_metrics
from trainer.loops.policy.update import Learned, Updater
from trainer.rollouts import PromptPlan, Reward, Span, Trajectory

from ..conftest import metrics_of, sample_first_step, small_config, whole_and_resumed

ANY = {"tau": 0.0, "eta": 1e9, "alpha": 0.75}
ADVANTAGES = torch.tensor([1.0, -1.0, 0.5, -0.5, 1.0, -1.0, 0.5, -0.5])
KNOWN = [Learned(0.5, None)] * 4 + [Learned(0.0, 0.9)] * 4
"""The first group is half solved, the second not at all."""


def config(**changes: Any) -> Any:
    return small_config(**{"well_learned": ANY, "optim": {"lr": 1e-2}} | changes)


def after(make_loop: Callable[..., Any], run_dir: Path, weigh: Any, advantages_B: torch.Tensor, known: Any) -> Any:
    """The trained parameters and the report of one update on the responses of step 1."""
    session = make_loop(weigh, run_dir)
    trajectories = sample_first_step(session)
    report = Updater(session.stage.parts.learner, weigh).run(trajectories, advantages_B, learned_B=known)
    return [p.detach().clone() for p in session.stage.parts.learner.parameters.values()], report


@pytest.mark.parametrize("minibatch", [None, 4])
def test_positive_responses_of_well_learned_prompts_are_scaled_and_the_divisor_stays(
    make_loop: Callable[..., Any], tmp_path: Path, minibatch: int | None
) -> None:
    weighing = config(optim={"lr": 1e-2, "minibatch_size": minibatch})
    weights, report = after(make_loop, tmp_path / "a", weighing, ADVANTAGES, KNOWN)
    by_hand = ADVANTAGES * torch.tensor([0.25, 1, 0.25, 1, 1, 1, 1, 1])
    plain = small_config(optim={"lr": 1e-2, "minibatch_size": minibatch})
    expected, _ = after(make_loop, tmp_path / "b", plain, by_hand, None)
    assert all(torch.equal(a, b) for a, b in zip(weights, expected, strict=True))
    assert report.scaled == {0, 2}
    assert (report.advantages[0], report.advantages[2]) == (0.25, 0.125)
    assert update_metrics(report)[0]["policy/well_learned"] == 0.25


def test_a_response_that_the_policy_is_unsure_of_counts_in_full(make_loop: Callable[..., Any], tmp_path: Path) -> None:
    unsure = config(well_learned=ANY | {"eta": 1e-6})
    _, report = after(make_loop, tmp_path / "run", unsure, ADVANTAGES, KNOWN)
    assert report.scaled == set()
    assert update_metrics(report)[0]["policy/well_learned"] == 0.0


def test_what_was_known_of_a_prompt_before_decides_together_with_its_group() -> None:
    def attempt(group: int, key: str, worth: float | None) -> Trajectory:
        plan = PromptPlan(key, group, 0, key, (1,), (1,), 0)
        return Trajectory(plan, (Span("prompt", (1,)), Span("policy", (2,), (-1.0,), 0)), "", "stop", Reward(worth))

    rates = PassCounts(0.5)
    rates.learned({"a": [True, False]})
    rows = [
        attempt(0, "a", 1.0),
        attempt(0, "a", None),
        attempt(1, "a", 0.0),
        attempt(2, "b", 1.0),
        attempt(3, "c", None),
    ]
    assert learned(rows, rates, 1.0) == [
        Learned(1.0, 0.5),
        Learned(1.0, 0.5),
        Learned(0.0, 0.5),
        Learned(1.0, None),
        Learned(0.0, None),
    ]


def test_a_resumed_run_weighs_as_the_whole_one(examples_file: Path, tiny_dir: Path, tmp_path: Path) -> None:
    weighing = config(pass_rates={"threshold": 0.1}, steps=6)
    whole, broken = whole_and_resumed(weighing, examples_file, tiny_dir, tmp_path, after=3)
    expected = metrics_of(whole)
    assert metrics_of(broken) == {place: value for place, value in expected.items() if place[0] >= 4}
    assert max(value for (_, key), value in expected.items() if key == "policy/well_learned") > 0


@pytest.mark.parametrize(
    "changes",
    [
        {"objective": {"name": "oapl"}, "scaffold": None},
        {"runner": {"kind": "offline", "push_every": 2}},
        {"optim": {"processes": 2}},
    ],
)
def test_where_nothing_can_be_weighed_it_is_said_at_the_form(changes: dict[str, Any]) -> None:
    with pytest.raises(ConfigInvalid) as caught:
        config(**changes)
    assert "well_learned" in {problem.path for problem in caught.value.problems}
