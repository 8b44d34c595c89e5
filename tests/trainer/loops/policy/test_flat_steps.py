"""Steps without anything to learn are reported in the log and as an alarm, once for each series, with the reason."""

import json
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from trainer.config import PolicyConfig
from trainer.config.alarms import title
from trainer.contracts import AlarmData
from trainer.loops.policy.collecting import flat
from trainer.loops.policy.flat_steps import FlatSteps
from trainer.loops.policy.reports import rollout_metrics
from trainer.rollouts import PromptPlan, Reward, Span, Trajectory, taught_rewards

from ..conftest import events_of, small_config
from .test_collecting import PLAIN, ROLLOUT, set_rewards

SOLVED, FAILED, MIXED, NONE = [[1.0] * 4] * 2, [[0.0] * 4] * 2, [[1.0] * 4, [0.0] * 4], [[None] * 4] * 2
TAUGHT = [[1.0] * 4, [0.0, 1.0, 0.0, 1.0]]


class Told:
    """The part of `Tell` that is used."""

    def __init__(self) -> None:
        self.alarms: list[AlarmData] = []
        self.lines: list[str] = []

    def alarm(self, alarm: AlarmData) -> None:
        self.alarms.append(alarm)

    def log(self, message: str, level: str = "info") -> None:
        self.lines.append(f"{level}: {message}")


def step(groups: Any) -> list[Trajectory]:
    spans = (Span("prompt", (1,)), Span("policy", (2,), (-1.0,), 0))
    return [
        Trajectory(PromptPlan("row", group, place, "", (1,), (1,), 0), spans, "", "stop", Reward(total))
        for group, worth in enumerate(groups)
        for place, total in enumerate(worth)
    ]


def cut(groups: Any, *places: int) -> list[Trajectory]:
    """The step, in which the responses of each group at these places were cut at the limit."""
    return [replace(t, stop="length") if t.plan.index in places else t for t in step(groups)]


def looked(steps: list[Any], config: PolicyConfig | None = None, killed_after: int = 0) -> Told:
    config = config or small_config()
    watch, told = FlatSteps(config), Told()
    for number, groups in enumerate(steps, 1):
        trajectories = groups if isinstance(groups[0], Trajectory) else step(groups)
        watch.look(number, trajectories, told)  # type: ignore[arg-type]
        if number == killed_after:
            kept = json.loads(json.dumps(watch.state_dict()))
            watch = FlatSteps(config)
            watch.load_state_dict(kept)
    return told


@pytest.mark.parametrize(
    ("flat", "subject", "words"),
    [
        (SOLVED, "solved", "All of them solved their prompt; in the first steps 60% did. Harder prompts help"),
        (FAILED, "not solved", "None of them solved its prompt. Remedies: easier prompts, a hint or a scaffold"),
        (MIXED, "always or never solved", "50% of them solved their prompt"),
    ],
)
def test_a_row_of_flat_steps_says_why_and_what_helps(flat: Any, subject: str, words: str) -> None:
    told = looked([TAUGHT, FAILED, TAUGHT, TAUGHT, TAUGHT, *[flat] * 5])
    [alarm], [line] = told.alarms, told.lines
    assert (alarm.signal, alarm.subject, alarm.since, alarm.places) == ("flat", subject, 6, ())
    assert line.startswith("warning: In steps 6 to 10 all responses to each prompt had the same reward")
    assert words in line
    assert title(alarm.signal, alarm.subject) == f"Nothing to learn: the prompts are {subject}"


@pytest.mark.parametrize(
    ("truncated", "cut_places", "rewards"),
    [
        ("train", (0,), [[0, 1, 1, 1], [0, 0, 0, 0], None]),
        ("mask", (0,), [[0, 1, 1, 1], [0, 0, 0, 0], None]),
        ("mask", (0, 1, 2, 3), [[], [], None]),
        ("drop", (0,), [[1, 1, 1], [0, 0, 0], None]),
        ("drop", (0, 1, 2, 3), [[], [], None]),
    ],
)
def test_rewards_of_cut_responses_count_as_they_do_in_training(truncated: Any, cut_places: Any, rewards: Any) -> None:
    trajectories = cut([[0.0, 1.0, 1.0, 1.0], [0.0] * 4, [None] * 4], *cut_places)
    expected = {group: found for group, found in enumerate(rewards) if found is not None}
    assert taught_rewards(trajectories, truncated) == expected
    teaches = truncated == "train" or (truncated, cut_places) == ("mask", (0,))
    assert flat(trajectories, truncated) == ({1, 2} if teaches else {0, 1, 2})
    assert rollout_metrics(trajectories, truncated)["rollout/flat_groups"] == (1 if teaches else 2)


def test_the_groups_that_are_not_flat_are_those_with_an_advantage(make_loop: Callable[..., Any]) -> None:
    """For every way to treat cut responses, and every place of them in a group of three."""
    for truncated in ("train", "mask", "drop"):
        config = small_config(rollout=ROLLOUT | {"truncated": truncated, "group_size": 4}, **PLAIN)
        loop = make_loop(config).stage
        for places in ((), (0,), (1,), (0, 1), (1, 2), (0, 1, 2), (0, 1, 2, 3)):
            trajectories = cut([[0.0, 1.0, 1.0, 1.0], [1.0] * 4, [1.0, 0.0, 0.0, 0.0]], *places)
            advantages = loop.advantages(trajectories).nan_to_num().reshape(3, 4)
            trained = {group for group in range(3) if advantages[group].any()}
            assert trained == {0, 1, 2} - flat(trajectories, truncated), (truncated, places)


@pytest.mark.parametrize("truncated", ["drop", "mask"])
def test_a_row_in_which_only_cut_responses_differ_says_so(truncated: Any) -> None:
    config = small_config(rollout=ROLLOUT | {"truncated": truncated})
    places = (1, 3) if truncated == "drop" else (0, 1, 2, 3)
    steps = [TAUGHT, *[cut([[0.0, 1.0, 0.0, 1.0]] * 2, *places)] * 5]
    for killed_after in (0, 4):
        told = looked(steps, config, killed_after)
        [alarm], [line] = told.alarms, told.lines
        assert (alarm.subject, alarm.since, alarm.share) == ("answered by responses that are cut", 2, len(places) / 4)
        assert line.startswith("warning: In steps 2 to 6 too few responses to each prompt were finished")
        assert f"{len(places) / 4:.0%} of the responses were cut at the limit" in line
        assert (
            title(alarm.signal, alarm.subject) == "Nothing to learn: the prompts are answered by responses that are cut"
        )
    assert looked(steps).alarms == []  # as they are trained on, they teach


def test_a_row_is_told_once_and_another_row_again() -> None:
    assert looked([SOLVED] * 4).alarms == []
    assert len(looked([SOLVED] * 60).alarms) == 1
    told = looked([SOLVED] * 9 + [TAUGHT] + [SOLVED] * 4 + [TAUGHT] + [FAILED] * 5)
    assert [(alarm.subject, alarm.since) for alarm in told.alarms] == [("solved", 1), ("not solved", 16)]


def test_a_step_without_any_reward_counts_in_no_row() -> None:
    told = looked([SOLVED] * 3 + [NONE] + [SOLVED] * 2)
    assert len(told.alarms) == 1 and told.alarms[0].share == 1.0


@pytest.mark.parametrize("killed_after", [2, 5, 7])
def test_a_resumed_run_says_it_as_a_whole_one_does(killed_after: int) -> None:
    steps = [TAUGHT, FAILED, *[MIXED] * 8]
    assert looked(steps, killed_after=killed_after).alarms == looked(steps).alarms != []


def test_where_equal_rewards_teach_nothing_is_said() -> None:
    for objective in ({"name": "distill", "teacher": "t"}, {"name": "grpo", "advantage": "remax"}):
        assert looked([SOLVED] * 9, small_config(scaffold=None, objective=objective)).alarms == []


def test_a_run_tells_it_at_the_step_and_goes_on(make_loop: Callable[..., Any], tmp_path: Path) -> None:
    session = make_loop(small_config(steps=8, rollout=ROLLOUT, **PLAIN))
    set_rewards(session, lambda group, place: 1.0)
    session.run()
    events = events_of(tmp_path / "run")
    assert [event.step for event in events if event.data.kind == "alarm"] == [5]
    said = [e for e in events if e.data.kind == "log" and "had the same reward" in e.data.message]
    assert [(each.step, each.data.level) for each in said] == [(5, "warning")]
    assert "All of them solved their prompt" in said[0].data.message and session.step == 8
