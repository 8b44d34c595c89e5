"""Phases of a run on the tiny model: what they change and report. A resumed run repeats them."""

from collections.abc import Callable
from itertools import count
from pathlib import Path
from typing import Any

import pytest

from trainer.config import ConfigInvalid
from trainer.loops.policy.collecting import Collected
from trainer.loops.session.errors import StopRequested
from trainer.loops.session.session import StepTell
from trainer.rollouts import PromptPlan, Reward, Span, Trajectory

from ..conftest import SMALL, events_of, metrics_of, small_config, whole_and_resumed

SET = {"begins": "step", "step": 2, "temperature": "set", "set_to": 0.7}
TOGGLE = {"begins": "step", "step": 2, "lengths": "toggle", "every": 2, "quantile": 0.5, "solved": 0.5}
SEARCH = {"begins": "step", "step": 3, "temperature": "search", "lowest": 0.5, "highest": 1.5, "tried": 3}


def logged(run_dir: Path) -> list[str]:
    return [event.data.message for event in events_of(run_dir) if event.data.kind == "log"]


def test_a_phase_changes_the_temperature_of_sampler_and_trainer(make_loop: Callable[..., Any], tmp_path: Path) -> None:
    session = make_loop(small_config(phases=[SET]))
    asked = []
    sample = session.stage.parts.sampler.sample

    def listen(requests: Any, *rest: Any) -> Any:
        asked.append({request.temperature for request in requests})
        return sample(requests, *rest)

    session.stage.parts.sampler.sample = listen
    session._config = session._config.model_copy(
        update={"evaluation": session._config.evaluation.model_copy(update={"every": 0})}
    )
    session.run()
    assert [temperatures for temperatures in asked if temperatures != {0.0}] == [{1.0}, {0.7}, {0.7}, {0.7}]
    found = metrics_of(tmp_path / "run")
    assert [found[step, "rollout/temperature"] for step in (1, 2, 3, 4)] == [1.0, 0.7, 0.7, 0.7]
    assert {place: value for place, value in found.items() if place[1] == "phase/number"} == {(2, "phase/number"): 1.0}
    # The trainer measures at the same temperature, so before the first update of the step its ratio to the sampler is 1. The engine
    # check looks at step 2 too, and ends a run whose sampler and trainer differ.
    assert any("sampler and trainer agree" in line for line in logged(tmp_path / "run"))


def test_a_phase_changes_the_learning_rate(make_loop: Callable[..., Any], tmp_path: Path) -> None:
    slower = {"step": 2, "learning_rate": "times", "lr_times": 0.5}
    session = make_loop(small_config(phases=[slower, {"step": 4, "learning_rate": "times", "lr_times": 1.0}]))
    session.run()
    found, lr = metrics_of(tmp_path / "run"), session.stage.parts.config.optim.lr
    assert [found[step, "optim/lr"] for step in (1, 2, 3, 4)] == pytest.approx([lr, lr / 2, lr / 2, lr])


def test_a_search_takes_the_warmest_temperature_that_costs_no_score(
    make_loop: Callable[..., Any], tmp_path: Path
) -> None:
    session = make_loop(small_config(phases=[SEARCH]))
    worth = {0.5: 0.8, 1.0: 0.795, 1.5: 0.2}
    session.stage.phases._score = lambda temperature, step, tell: worth[temperature]
    session.run()
    found = metrics_of(tmp_path / "run")
    assert [found[step, "rollout/temperature"] for step in (2, 3, 4)] == [1.0, 1.0, 1.0]
    assert "phase 1 begins: the best temperature of 0.5 to 1.5; the temperature is 1" in logged(tmp_path / "run")


def test_a_resumed_run_repeats_phases_and_their_searches(examples_file: Path, tiny_dir: Path, tmp_path: Path) -> None:
    config = small_config(phases=[SET, SEARCH])
    whole, broken = whole_and_resumed(config, examples_file, tiny_dir, tmp_path, after=2)
    again, expected = metrics_of(broken), metrics_of(whole)
    assert (3, "phase/number") in again
    assert again == {place: value for place, value in expected.items() if place[0] >= 3}
    assert any(line.startswith("held-out score by temperature: 0.5: ") for line in logged(whole))


def test_a_stop_during_a_search_begins_the_phase_later(make_loop: Callable[..., Any], tmp_path: Path) -> None:
    session = make_loop(small_config(phases=[SET, SEARCH]))
    phases, score = session.stage.phases, session.stage.phases._score

    def stop(*arguments: Any) -> Any:
        phases._score = score
        raise StopRequested

    phases._score = stop
    with pytest.raises(StopRequested):
        session.run()
    assert session.step == 2
    assert session.stage.parts.schedule.began == [2]
    session.run()
    assert session.stage.parts.schedule.began == [2, 3]


def test_a_plateau_that_never_comes_is_said(make_loop: Callable[..., Any], tmp_path: Path) -> None:
    """The rewards rise by this much in each step."""
    waiting = {"begins": "plateau", "window": 4, "temperature": "set", "name": "warmer"}
    session = make_loop(small_config(steps=6, phases=[waiting]))
    schedule, rising = session.stage.parts.schedule, count()
    note = schedule.note
    schedule.note = lambda rewards: note([float(next(rising))])
    session.run()
    said = "phase 1, warmer, never began: it waited for the mean reward to reach a plateau over 4 steps; phase 0 went on to the end"
    assert said in logged(tmp_path / "run")


def group(number: int, key: str, *worth: tuple[int, float | None]) -> list[Trajectory]:
    """Responses to a prompt, given by length and reward."""
    return [
        Trajectory(
            PromptPlan(key, number, index, key, (1,), (1,), 0),
            (Span("prompt", (1,)), Span("policy", (2,) * length, (-1.0,) * length, 0)),
            "",
            "stop",
            reward=Reward(reward),
        )
        for index, (length, reward) in enumerate(worth)
    ]


def rewards(collected: Collected) -> list[float | None]:
    return [trajectory.reward.total for trajectory in collected.trajectories]


def test_a_toggle_takes_the_reward_of_long_responses_and_gives_it_back(
    make_loop: Callable[..., Any], tmp_path: Path
) -> None:
    """Prompt a: correct lengths 10, 20, 30, so its budget is 20. Prompt b has no correct response and no budget."""
    session = make_loop(small_config(phases=[TOGGLE], steps=9))
    stage, schedule = session.stage, session.stage.parts.schedule
    found = Collected(
        [*group(0, "a", (10, 1.0), (20, 1.0), (30, 1.0), (40, None)), *group(1, "b", (10, 0.5), (90, 0.9))], None
    )
    trained = {}
    for step in range(1, 7):
        tell = StepTell(session, step)
        stage.phases.enter(step, tell)
        trained[step] = rewards(stage.phases.rewarded(step, found, tell))
    measured = [1.0, 1.0, 1.0, None, 0.5, 0.9]
    cut = [1.0, 1.0, 0.0, None, 0.5, 0.9]
    assert trained == {1: measured, 2: cut, 3: cut, 4: measured, 5: measured, 6: cut}
    assert rewards(found) == measured
    assert schedule.budgets == {"a": 20.0}
    told = metrics_of(tmp_path / "run")
    assert {step: value for (step, key), value in told.items() if key == "phase/budget"} == {1: 0, 2: 1, 4: 0, 6: 1}
    assert (told[2, "toggle/limited"], told[2, "toggle/over"], told[4, "toggle/over"]) == (0.5, 1 / 6, 0.0)


def test_a_budget_is_taken_once_and_not_enforced_where_the_prompt_is_hardly_solved(
    make_loop: Callable[..., Any],
) -> None:
    session = make_loop(small_config(phases=[TOGGLE]))
    stage, tell = session.stage, StepTell(session, 2)
    stage.phases.enter(2, tell)
    stage.phases.rewarded(2, Collected(group(0, "a", (10, 1.0), (20, 1.0)), None), tell)
    later = Collected(group(0, "a", (60, 1.0), (70, 1.0), (10, 0.0), (10, 0.0)), None)  # mean 0.5, which is enough
    assert rewards(stage.phases.rewarded(3, later, tell)) == [0.0, 0.0, 0.0, 0.0]
    assert stage.parts.schedule.budgets == {"a": 15.0}
    hardly = Collected(group(0, "a", (60, 1.0), (10, 0.0), (10, 0.0)), None)
    assert rewards(stage.phases.rewarded(3, hardly, tell)) == [1.0, 0.0, 0.0]


def test_a_resumed_run_keeps_the_budgets_of_its_prompts(examples_file: Path, tiny_dir: Path, tmp_path: Path) -> None:
    config = small_config(phases=[TOGGLE | {"step": 1, "correct": 0.0, "solved": 0.0, "every": 3}], steps=4)
    whole, broken = whole_and_resumed(config, examples_file, tiny_dir, tmp_path, after=2)
    again, expected = metrics_of(broken), metrics_of(whole)
    assert expected[1, "toggle/limited"] > 0
    assert again == {place: value for place, value in expected.items() if place[0] >= 3}


@pytest.mark.parametrize(
    ("changes", "path", "words"),
    [
        ({"phases": [{"step": 2}]}, "phases.0", "changes nothing"),
        ({"phases": [{"step": 9, "temperature": "set"}]}, "phases.0.step", "the run ends after step 4"),
        ({"phases": [SET, SET]}, "phases.1.step", "not after step 2"),
        (
            {"phases": [{"begins": "plateau", "window": 4, "temperature": "set"}]},
            "phases.0.window",
            "the phase cannot begin before step 5",
        ),
        (
            {"steps": 8, "phases": [SET | {"step": 5}, {"begins": "pass_rate", "window": 4, "temperature": "set"}]},
            "phases.1.window",
            "the phase cannot begin before step 9",
        ),
        (
            {"steps": 8, "phases": [{"begins": "plateau", "window": 4, "temperature": "set"}] * 2},
            "phases.1.window",
            "the phase cannot begin before step 9",
        ),
        ({"phases": [SEARCH | {"highest": 0.4}]}, "phases.0.highest", "must be above the lowest"),
        (
            {"phases": [SEARCH], "evaluation": {"max_examples": 0}},
            "phases.0.temperature",
            "a search needs held-out prompts",
        ),
        ({"phases": [TOGGLE], "rollout": SMALL["rollout"] | {"replace_flat": 1}}, "phases.0.lengths", "set that to 0"),
        ({"phases": [{"prompts": "some"}]}, "phases.0.prompts", "say which prompts: by rate_above"),
        (
            {"phases": [TOGGLE], "rewards": [{"kind": "rubric", "weight": 0.5}]},
            "phases.0.correct",
            "no response is worth more than 0.5 by the parts of the reward, so none is correct from 1 on",
        ),
        (
            {
                "phases": [TOGGLE | {"correct": 0.2, "solved": 0.4}],
                "rewards": [{"kind": "rubric"}, {"kind": "format"}],
                "reward_expression": "0.3 * rubric * format",
            },
            "phases.0.solved",
            "no response is worth more than 0.3 by the parts of the reward, so no group has a mean of 0.4",
        ),
        ({"pass_rates": {"threshold": 1.5}}, "pass_rates.threshold", "no score is above 1, and no reward above 1"),
        ({"phases": [SET], "runner": {"kind": "async"}}, "phases", "sample ahead"),
        ({"phases": [SET], "optim": {"processes": 2}}, "phases", "cannot change phase"),
    ],
)
def test_what_cannot_work_is_said_at_its_field(changes: dict[str, Any], path: str, words: str) -> None:
    with pytest.raises(ConfigInvalid) as error:
        small_config(**changes)
    assert words in {problem.path: problem.message for problem in error.value.problems}.get(path, "")


@pytest.mark.parametrize(
    ("rewards", "expression", "most"),
    [
        ([{"kind": "rubric"}], "", 1.0),
        ([{"kind": "rubric"}, {"kind": "overlong", "soft_tokens": 4}], "", 1.0),
        ([{"kind": "rubric", "weight": 0.5}, {"kind": "format", "weight": 0.25}], "", 0.75),
        ([{"kind": "rubric", "at_most": 0.4}, {"kind": "format", "shadow": True}], "", 0.4),
        ([{"kind": "rubric"}, {"kind": "format", "weight": -1.0}], "", 1.0),
        ([{"kind": "format"}, {"kind": "rubric", "weight": -1.0}], "", None),
        ([{"kind": "rubric"}, {"kind": "format", "weight": -1.0, "at_least": 0.5}], "", 0.5),
        ([{"kind": "rubric"}, {"kind": "format"}], "2 * rubric + format", 3.0),
        ([{"kind": "rubric"}, {"kind": "http", "endpoint": "x"}], "2 * rubric + http", None),
        ([{"kind": "rubric"}, {"kind": "http", "endpoint": "x"}], "min(rubric, http)", 1.0),
        ([{"kind": "rubric"}, {"kind": "http", "endpoint": "x", "at_most": 0.2}], "rubric + 5 * http", 2.0),
        ([{"kind": "format"}, {"kind": "overlong", "soft_tokens": 4}], "-overlong * format", 1.0),
        ([{"kind": "rubric"}, {"kind": "format"}], "gate(format, clip(rubric, 0, 0.6))", 0.6),
        ([{"kind": "rubric"}, {"kind": "format"}], "10 * (rubric >= 1) + format", 11.0),
    ],
)
def test_the_most_that_a_response_can_be_worth(
    rewards: list[dict[str, Any]], expression: str, most: float | None
) -> None:
    assert small_config(rewards=rewards, reward_expression=expression).composition.ceiling == most


def test_a_search_without_held_out_prompts_is_said_before_the_launch() -> None:
    config = small_config(phases=[SEARCH])
    said = {problem.path: problem.message for problem in config.data_problems({"train": {"rubrics": 4, "examples": 4}})}
    assert "the dataset version has none" in said["phases.0.temperature"]
    there = {"train": {"rubrics": 4, "examples": 4}, "heldout": {"examples": 2}}
    assert "phases.0.temperature" not in {problem.path for problem in config.data_problems(there)}
