"""The groups that a step trains on. Flat groups are replaced, up to a bound, and reported."""

from collections import Counter
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from trainer.config import ConfigInvalid
from trainer.inference.sampling import SampleResult
from trainer.loops.session.session import StepTell
from trainer.rollouts import Reward, Trajectory

from ..conftest import events_of, metrics_of, sample_first_step, small_config

ROLLOUT = {"prompts_per_step": 2, "group_size": 4, "max_new_tokens": 8}


def set_rewards(session: Any, worth: Callable[[int, int], float | None]) -> None:
    """Replaces rubrics: rewards depend on the number of the group within its step and the place in the group."""
    collector = session.stage.collector
    sample = collector._sampled

    def scored(step: int, plans: Any, tell: Any) -> Any:
        found = sample(step, plans, tell)
        return [replace(t, reward=Reward(worth(t.plan.group, t.plan.index))) for t in found]

    collector._sampled = scored


def test_flat_groups_give_way_to_the_prompts_that_come_next(make_loop: Callable[..., Any], tmp_path: Path) -> None:
    session = make_loop(small_config(steps=1, rollout=ROLLOUT | {"replace_flat": 3}, evaluation={"every": 0}))
    set_rewards(session, lambda group, place: float(place % 2) if group in (1, 3) else 1.0)
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
    set_rewards(session, lambda group, place: None if group == 0 else 1.0)
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

    set_rewards(session, stop_in_the_second_round)
    from trainer.loops.session.errors import StopRequested

    with pytest.raises(StopRequested):
        session.stage.step(1, StepTell(session, 1))
    assert session.stage.planner.order.state_dict() == before and 2 in asked


def test_a_masked_response_counts_in_its_group_and_changes_nothing(make_loop: Callable[..., Any]) -> None:
    session = make_loop(small_config(rollout=ROLLOUT | {"truncated": "mask"}))
    trajectories = [
        replace(t, reward=Reward(float(t.plan.index)), stop="length" if t.plan.index == 0 else "stop")
        for t in sample_first_step(session)
    ]
    advantages = session.stage.advantages(trajectories)
    plain = make_loop(small_config()).stage.advantages(trajectories)
    for trajectory, masked, whole in zip(trajectories, advantages.tolist(), plain.tolist(), strict=True):
        assert masked != masked if trajectory.plan.index == 0 else masked == whole


def test_a_dropped_response_counts_nowhere(make_loop: Callable[..., Any]) -> None:
    """The rewards are 0, 1, 2, 3, and the first response is cut off. If it is dropped, the mean of the others is 2; if it is masked, the
    mean is 1.5.
    """
    objective = {"advantage": "centred"}
    session = make_loop(small_config(rollout=ROLLOUT | {"truncated": "drop"}, objective=objective))
    found = sample_first_step(session)
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


def test_where_nothing_teaches_the_page_says_so(make_loop: Callable[..., Any], tmp_path: Path) -> None:
    session = make_loop(small_config(steps=1, rollout=ROLLOUT | {"replace_flat": 2}, evaluation={"every": 0}))
    set_rewards(session, lambda group, place: 1.0)
    session.run()
    (said,) = [
        e.data.message for e in events_of(tmp_path / "run") if e.data.kind == "log" and "dynamic" in e.data.message
    ]
    assert "all 6 prompts, of this step and of 2 rounds of replacement" in said and "mean reward is 1" in said
    assert metrics_of(tmp_path / "run")[1, "rollout/replaced_groups"] == 0.0


PLAIN: dict[str, Any] = {"scaffold": None, "evaluation": {"every": 0, "max_examples": 0}, "checkpoint": {"every": 100}}
BUDGET = ROLLOUT | {"budget": {"low": 2, "high": 6}}


def solves(session: Any, solved: Callable[[str, int], bool]) -> dict[int, list[tuple[str, int]]]:
    """Replaces the model: each plan gets two tokens and a reward by its prompt and place. It keeps the prompts and sizes of the groups of
    each step.
    """
    collector, seen = session.stage.collector, {}
    result = SampleResult((5, 6), (-1.0, -1.0), "ab", "stop", 0)

    def scored(step: int, plans: Any, tell: Any) -> Any:
        tell.check()
        found = [Trajectory.of(plan, result, Reward(float(solved(plan.example_key, plan.index)))) for plan in plans]
        sizes = Counter((plan.group, plan.example_key) for plan in plans)
        seen.setdefault(step, []).extend((key, size) for (_, key), size in sizes.items())
        return found

    collector._sampled = scored
    collector.comparable = lambda step, trajectories: []  # the probabilities are invented
    return seen


def test_a_budget_gives_what_is_sometimes_solved_more(make_loop: Callable[..., Any], tmp_path: Path) -> None:
    """Each step has 8 responses. Once every prompt is known, a half-solved prompt gets 6 and an always solved one gets the rest."""
    session = make_loop(small_config(steps=12, rollout=BUDGET, **PLAIN))
    keys = sorted({prompt.example.key for prompt in session.stage.parts.prompts.train})
    half = set(keys[: len(keys) // 2])
    seen = solves(session, lambda key, place: key not in half or place % 2 == 0)
    session.run()
    assert all(sum(size for _, size in groups) == 8 for groups in seen.values())
    late = [dict(groups) for step, groups in seen.items() if step > len(keys)]
    mixed = [sizes for sizes in late if len(half & set(sizes)) == 1]
    assert mixed and all(sizes[key] == (6 if key in half else 2) for sizes in mixed for key in sizes)
    values = metrics_of(tmp_path / "run")
    assert values[12, "rollout/learnable"] == len(half) / len(keys)
    assert values[12, "rollout/solved"] == 1 - len(half) / len(keys) and values[12, "rollout/out_of_reach"] == 0.0
    assert values[1, "rollout/largest_group"] == values[1, "rollout/smallest_group"] == 4.0


def test_a_budget_with_nothing_to_go_by_says_so_once(make_loop: Callable[..., Any], tmp_path: Path) -> None:
    session = make_loop(small_config(steps=12, rollout=BUDGET, **PLAIN))
    keys = sorted({prompt.example.key for prompt in session.stage.parts.prompts.train})
    solves(session, lambda key, place: key != keys[0])
    session.run()
    said = [
        e for e in events_of(tmp_path / "run") if e.data.kind == "log" and "cannot prefer any prompt" in e.data.message
    ]
    assert len(said) == 1 and said[0].step > len(keys) // 2, (
        "not while prompts are met for the first time, and not each step"
    )
    assert "Each gets 2 responses, and the rest goes to those that come first" in said[0].data.message


def test_a_run_with_a_budget_resumes_bit_for_bit(make_loop: Callable[..., Any], tmp_path: Path) -> None:
    def made(steps: int, where: str) -> tuple[Any, dict[int, list[tuple[str, int]]]]:
        config = small_config(steps=steps, rollout=BUDGET, **PLAIN)
        session = make_loop(config, tmp_path / where)
        keys = sorted({prompt.example.key for prompt in session.stage.parts.prompts.train})
        return session, solves(session, lambda key, place: keys.index(key) % 2 == 0 or place % 2 == 0)

    whole, there = made(6, "whole")
    whole.run()
    assert any(size != 4 for step in (4, 5, 6) for _, size in there[step]), "sizes do differ"
    made(3, "again")[0].run()
    again, here = made(6, "again")
    assert again.resume() and again.step == 3
    again.run()
    assert here == {step: there[step] for step in (4, 5, 6)}
    assert metrics_of(tmp_path / "again") == metrics_of(tmp_path / "whole")
    weights, resumed = whole.stage.parts.learner.policy(), again.stage.parts.learner.policy()
    assert all(weights[name].equal(resumed[name]) for name in weights)


def test_a_step_that_is_given_up_has_taught_nothing(make_loop: Callable[..., Any]) -> None:
    from trainer.loops.session.errors import StopRequested

    session = make_loop(small_config(rollout=BUDGET, **PLAIN))

    def stops(key: str, place: int) -> bool:
        session.job.monitor.request_stop()
        return True

    solves(session, stops)
    with pytest.raises(StopRequested):
        session.stage.step(1, StepTell(session, 1))
    assert session.stage.planner.pass_rates.state_dict() == {}


def test_replaced_groups_leave_their_responses_to_those_that_come(
    make_loop: Callable[..., Any], tmp_path: Path
) -> None:
    """Every step trains 8 responses, with any group sizes and any flat groups."""
    config = small_config(steps=8, rollout=BUDGET | {"replace_flat": 9}, **PLAIN)
    session = make_loop(config)
    keys = sorted({prompt.example.key for prompt in session.stage.parts.prompts.train})
    dull = set(keys[:2])
    seen = solves(session, lambda key, place: key not in dull and place % 2 == 0)
    session.run()
    for groups in seen.values():
        assert sum(size for key, size in groups if key not in dull) == 8
    assert any(key in dull for groups in seen.values() for key, _ in groups), "some were replaced"


@pytest.mark.parametrize(
    ("rollout", "changes", "path"),
    [
        ({"budget": {"low": 5, "high": 6}}, {}, "rollout.budget.low"),
        ({"budget": {"low": 2, "high": 3}}, {}, "rollout.budget.high"),
        ({"budget": {"low": 1, "high": 6}}, {}, "rollout.budget.low"),
        ({"budget": {}}, {"runner": {"kind": "async", "policy": "dora"}}, "rollout.budget"),
        ({"budget": {}}, {"runner": {"kind": "async", "policy": "april"}}, "rollout.budget"),
        ({"budget": {}}, {"runner": {"kind": "offline", "push_every": 2}, "steps": 2}, "rollout.budget"),
        ({"budget": {}}, {"objective": {"name": "distill", "teacher": "t"}}, "rollout.budget"),
        ({"budget": {"value": "other"}}, {}, "rollout.budget.value"),
    ],
)
def test_a_budget_that_cannot_be_is_refused_at_its_field(
    rollout: dict[str, Any], changes: dict[str, Any], path: str
) -> None:
    with pytest.raises(ConfigInvalid) as refused:
        small_config(rollout=ROLLOUT | rollout, scaffold=None, **changes)
    assert path in {problem.path for problem in refused.value.problems}


def test_a_scaffold_falls_over_each_group_whatever_its_size(make_loop: Callable[..., Any]) -> None:
    """The last response of a group sees nothing, and the first one sees most."""
    session = make_loop(small_config(rollout=BUDGET, scaffold={"step": "constant"}))
    planner = session.stage.planner
    key = session.stage.parts.prompts.train[planner.order.at(0)].example.key
    planner.pass_rates.learned({key: [True] * 4})
    plans = planner.plan(1)
    for group, size in ((0, 2), (1, 6)):
        shown = [plan.scaffold_shown for plan in plans if plan.group == group]
        assert len(shown) == size and shown[0] > 0 and shown[-1] == 0 and shown == sorted(shown, reverse=True)
