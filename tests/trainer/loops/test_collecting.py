"""Which groups a step trains on: flat ones are replaced, bounded, and told."""

from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from trainer.config import ConfigInvalid
from trainer.loops.session import StepTell
from trainer.rollouts import Reward

from .conftest import events_of, metrics_of, sampled, small_config

ROLLOUT = {"prompts_per_step": 2, "group_size": 4, "max_new_tokens": 8}


def rewarded(session: Any, worth: Callable[[int, int], float | None]) -> None:
    """Rewards by the number of the group within its step and the place in the group, instead of from rubrics."""
    collector = session.stage.collector
    sample = collector._sampled

    def scored(step: int, plans: Any, tell: Any) -> Any:
        found = sample(step, plans, tell)
        return [replace(t, reward=Reward(worth(t.plan.group, t.plan.index))) for t in found]

    collector._sampled = scored


def test_flat_groups_give_way_to_the_prompts_that_come_next(make_loop: Callable[..., Any], tmp_path: Path) -> None:
    session = make_loop(small_config(steps=1, rollout=ROLLOUT | {"replace_flat": 3}, evaluation={"every": 0}))
    rewarded(session, lambda group, place: float(place % 2) if group in (1, 3) else 1.0)
    session.run()
    values = metrics_of(tmp_path / "run")
    assert values[1, "rollout/replaced_groups"] == 2.0 and values[1, "rollout/flat_groups"] == 2.0
    told = [r for e in events_of(tmp_path / "run") if e.data.kind == "rollouts" for r in e.data.rollouts]
    train = [row for row in told if row.phase == "train"]
    assert sorted({row.group for row in train}) == [0, 1, 2, 3], "what was sampled in vain is told too"
    assert {row.group for row in train if row.ratios} == {1, 3}
    assert len({row.example_key for row in train}) == 4
    assert session.stage.planner.order.state_dict() == make_order_after(make_loop, 4)


def make_order_after(make_loop: Callable[..., Any], prompts: int) -> Any:
    order = make_loop(small_config()).stage.planner.order
    order.take(prompts)
    return order.state_dict()


def test_where_nothing_teaches_the_search_ends_and_no_weight_moves(make_loop: Callable[..., Any]) -> None:
    session = make_loop(small_config(steps=1, rollout=ROLLOUT | {"replace_flat": 2}, evaluation={"every": 0}))
    rewarded(session, lambda group, place: None if group == 0 else 1.0)
    before = session.stage.parts.learner.policy()
    session.run()
    after = session.stage.parts.learner.policy()
    assert all(before[name].equal(after[name]) for name in before)


def test_a_stop_during_replacement_draws_the_same_prompts_again(make_loop: Callable[..., Any]) -> None:
    session = make_loop(small_config(rollout=ROLLOUT | {"replace_flat": 2}))
    before = session.stage.planner.order.state_dict()
    asked = []

    def stop_in_the_second_round(group: int, place: int) -> float:
        asked.append(group)
        if group == 2:
            session.job.monitor.request_stop()
        return 1.0

    rewarded(session, stop_in_the_second_round)
    from trainer.loops.errors import StopRequested

    with pytest.raises(StopRequested):
        session.stage.step(1, StepTell(session, 1))
    assert session.stage.planner.order.state_dict() == before and 2 in asked


def test_a_masked_response_counts_in_its_group_and_changes_nothing(make_loop: Callable[..., Any]) -> None:
    session = make_loop(small_config(rollout=ROLLOUT | {"truncated": "mask"}))
    trajectories = [
        replace(t, reward=Reward(float(t.plan.index)), stop="length" if t.plan.index == 0 else "stop")
        for t in sampled(session)
    ]
    advantages = session.stage.advantages(trajectories)
    plain = make_loop(small_config()).stage.advantages(trajectories)
    for trajectory, masked, whole in zip(trajectories, advantages.tolist(), plain.tolist(), strict=True):
        assert masked != masked if trajectory.plan.index == 0 else masked == whole


def test_a_dropped_response_counts_nowhere(make_loop: Callable[..., Any]) -> None:
    """Rewards 0, 1, 2, 3, the first one cut: dropped, the others' mean is 2; masked, it would be 1.5."""
    objective = {"advantage": "centred"}
    session = make_loop(small_config(rollout=ROLLOUT | {"truncated": "drop"}, objective=objective))
    found = sampled(session)
    group = [t for t in found if t.plan.group == 0]
    cut = [
        replace(t, reward=Reward(float(t.plan.index)), stop="length" if t.plan.index == 0 else "stop") for t in group
    ]
    assert session.stage.advantages(cut).tolist() == pytest.approx([float("nan"), -1.0, 0.0, 1.0], nan_ok=True)
    session = make_loop(small_config(rollout=ROLLOUT | {"truncated": "mask"}, objective=objective))
    assert session.stage.advantages(cut).tolist() == pytest.approx([float("nan"), -0.5, 0.5, 1.5], nan_ok=True)


@pytest.mark.parametrize(
    "changes",
    [
        {"runner": {"kind": "async"}, "scaffold": None},
        {"objective": {"advantage": "remax"}},
        {"objective": {"name": "distill", "teacher": "t"}, "scaffold": None},
    ],
)
def test_replacement_is_refused_where_it_makes_no_sense(changes: dict[str, Any]) -> None:
    with pytest.raises(ConfigInvalid, match="rollout.replace_flat"):
        small_config(rollout=ROLLOUT | {"replace_flat": 1}, **changes)
