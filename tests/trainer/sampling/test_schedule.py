"""Which phase begins when, and that a saved schedule goes on as if nothing had happened."""

import json
from typing import Any

from trainer.config.phases import Phase
from trainer.sampling import Schedule


def phases(*each: dict[str, Any]) -> list[Phase]:
    return [Phase.model_validate({"temperature": "set", **one}) for one in each]


def played(schedule: Schedule, means: list[float | None], first: int = 1) -> None:
    """Steps from `first` on with these mean rewards."""
    for step, mean in enumerate(means, first):
        while schedule.due(step):
            schedule.begin(step, None)
        schedule.note(mean)


def test_a_phase_begins_at_its_step_and_not_before() -> None:
    schedule = Schedule(phases({"step": 3}))
    assert schedule.due(2) is None
    assert schedule.due(3)


def test_a_plateau_needs_its_whole_window() -> None:
    schedule = Schedule(phases({"begins": "plateau", "window": 4}))
    played(schedule, [0.5, 0.5, 0.5])
    assert schedule.due(4) is None
    schedule.note(0.5)
    assert schedule.due(5)


def test_a_reward_that_rises_is_no_plateau() -> None:
    schedule = Schedule(phases({"begins": "plateau", "window": 4}))
    played(schedule, [0.1 * step for step in range(30)])
    assert schedule.began == []


def test_a_phase_looks_at_what_came_after_the_one_before_it() -> None:
    """Level from the start: the first begins at 5, the second not before it has four steps of its own."""
    schedule = Schedule(phases(*[{"begins": "plateau", "window": 4}] * 2))
    played(schedule, [0.5] * 10)
    assert schedule.began == [5, 9]


def test_a_step_whose_phase_is_late_begins_at_once() -> None:
    """The phase of step 3 waits for the plateau before it."""
    schedule = Schedule(phases({"begins": "plateau", "window": 4}, {"step": 3}))
    played(schedule, [0.5] * 6)
    assert schedule.began == [5, 5]


def test_a_step_without_rewards_counts_in_no_window() -> None:
    schedule = Schedule(phases({"begins": "plateau", "window": 4}))
    played(schedule, [0.5, None, 0.5, None, 0.5])
    assert schedule.due(6) is None
    schedule.note(0.5)
    assert schedule.due(7)


def test_a_saved_schedule_goes_on_as_if_nothing_had_happened() -> None:
    plan = phases({"step": 2}, {"begins": "plateau", "window": 4}, {"begins": "plateau", "window": 5})
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
