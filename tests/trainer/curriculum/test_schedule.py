"""When each phase begins. A saved schedule continues as if it had not been interrupted."""

import json
from typing import Any

import pytest

from trainer.config.sections.phase_kinds import RewardedPhase
from trainer.curriculum import Schedule


def phases(*each: dict[str, Any]) -> list[RewardedPhase]:
    return [RewardedPhase.model_validate({"temperature": "set", **one}) for one in each]


def played(schedule: Schedule, means: list[float | None], first: int = 1) -> None:
    """Steps from `first` on with these mean rewards."""
    for step, mean in enumerate(means, first):
        while schedule.due(step):
            schedule.begin(step, None)
        schedule.note([] if mean is None else [mean])


def test_a_phase_begins_at_its_step_and_not_before() -> None:
    schedule = Schedule(phases({"step": 3}))
    assert schedule.due(2) is None
    assert schedule.due(3)


def test_a_plateau_needs_its_whole_window() -> None:
    schedule = Schedule(phases({"begins": "plateau", "window": 4}))
    played(schedule, [0.5, 0.5, 0.5])
    assert schedule.due(4) is None
    schedule.note([0.5])
    assert schedule.due(5)


def test_a_reward_that_rises_is_no_plateau() -> None:
    schedule = Schedule(phases({"begins": "plateau", "window": 4}))
    played(schedule, [0.1 * step for step in range(30)])
    assert schedule.began == []


def test_a_phase_looks_at_what_came_after_the_one_before_it() -> None:
    """Rewards are level from the start. The first phase begins at step 5, the second not before it has four steps of its own."""
    schedule = Schedule(phases(*[{"begins": "plateau", "window": 4}] * 2))
    played(schedule, [0.5] * 10)
    assert schedule.began == [5, 9]


def test_a_step_whose_phase_is_late_begins_at_once() -> None:
    """The phase of step 3 waits for the plateau of the phase before it."""
    schedule = Schedule(phases({"begins": "plateau", "window": 4}, {"step": 3}))
    played(schedule, [0.5] * 6)
    assert schedule.began == [5, 5]


def test_a_step_without_rewards_counts_in_no_window() -> None:
    schedule = Schedule(phases({"begins": "plateau", "window": 4}))
    played(schedule, [0.5, None, 0.5, None, 0.5])
    assert schedule.due(6) is None
    schedule.note([0.5])
    assert schedule.due(7)


def test_a_saved_schedule_goes_on_as_if_nothing_had_happened() -> None:
    plan = phases({"step": 2}, {"begins": "plateau", "window": 4}, {"begins": "pass_rate", "window": 5, "correct": 0.4})
    means = [0.31, 0.52, 0.47, 0.5, 0.49, 0.51, 0.5, 0.48, 0.52, 0.5, 0.49, 0.51, 0.5]
    whole = Schedule(plan)
    played(whole, means)
    assert len(whole.began) == 3
    for cut in range(len(means)):
        first, second = Schedule(plan), Schedule(plan)
        played(first, means[:cut])
        second.load_state_dict(json.loads(json.dumps(first.state_dict())))
        played(second, means[cut:], cut + 1)
        assert second.state_dict() == whole.state_dict()


def test_a_toggle_begins_with_a_budget_and_ends_where_lengths_are_free() -> None:
    schedule = Schedule(
        phases({"step": 3, "lengths": "toggle", "every": 2}, {"step": 8}, {"step": 9, "lengths": "free"})
    )
    seen = []
    for step in range(1, 12):
        while schedule.due(step):
            schedule.begin(step, None)
        seen.append(schedule.in_budget(step))
    assert seen == [False, False, True, True, False, False, True, True, False, False, False]


def test_a_toggle_that_begins_anew_takes_its_budgets_anew() -> None:
    schedule = Schedule(phases({"step": 1, "lengths": "toggle"}, {"step": 2}, {"step": 3, "lengths": "toggle"}))
    schedule.begin(1, None)
    schedule.budgets["a"] = 7.0
    schedule.begin(2, None)
    assert schedule.budgets == {"a": 7.0}
    schedule.begin(3, None)
    assert schedule.budgets == {}


def test_a_pass_rate_is_the_mean_share_of_correct_responses_over_the_window() -> None:
    """Shares 0, 0, 1/2, 1/2, 1: over four steps their mean is 1/4, then 1/2."""
    schedule = Schedule(phases({"begins": "pass_rate", "window": 4, "pass_rate": 0.5, "correct": 0.8}))
    for rewards in ([0.7, 0.1], [0.79], [0.8, 0.1], [1.0, 0.2]):
        schedule.note(rewards)
    assert schedule.due(5) is None
    schedule.note([0.9, 0.8])
    assert schedule.due(6)


def test_a_step_without_rewards_counts_in_no_pass_rate() -> None:
    schedule = Schedule(phases({"begins": "pass_rate", "window": 4}))
    played(schedule, [1.0, None, 1.0, None, 1.0])
    assert schedule.due(6) is None
    schedule.note([1.0])
    assert schedule.due(7)


def test_a_saved_schedule_that_lacks_a_part_is_refused() -> None:
    plan = phases({"step": 2, "lengths": "toggle"}, {"begins": "pass_rate", "window": 4})
    schedule = Schedule(plan)
    played(schedule, [0.5, 1.0])
    for name in ("passed", "budgets", "means", "temperature", "began", "phases"):
        state = {key: value for key, value in schedule.state_dict().items() if key != name}
        with pytest.raises(ValueError, match=f"lacks parts of its phases: {name}"):
            Schedule(plan).load_state_dict(state)


def test_a_fork_with_other_phases_begins_with_its_first_and_one_that_adds_phases_goes_on() -> None:
    plan = phases({"step": 2}, {"begins": "plateau", "window": 4})
    schedule = Schedule(plan)
    played(schedule, [0.5, 0.5, 0.5])
    schedule.temperature = 0.7
    state = json.loads(json.dumps(schedule.state_dict()))

    other = Schedule(phases({"step": 3}, {"begins": "plateau", "window": 4}))
    other.load_state_dict(state)
    assert (other.anew, other.began, other.temperature) == (True, [], None)

    longer = Schedule([*plan, *phases({"step": 40})])
    longer.load_state_dict(state)
    assert (longer.anew, longer.began, longer.temperature) == (False, [2], 0.7)
    assert longer.state_dict()["means"] == [0.5, 0.5]

    later = Schedule([plan[0], *phases({"begins": "pass_rate", "window": 4})])
    later.load_state_dict(state)
    assert (later.began, later.state_dict()["means"]) == ([2], [])

    none = Schedule([])
    none.load_state_dict(state)
    assert (none.temperature, none.number) == (None, 0)
