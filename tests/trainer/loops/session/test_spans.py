"""How a step spends its time, measured by a clock that the test moves."""

import pytest

from trainer.loops.session import spans
from trainer.loops.session.spans import Spans


class Clock:
    now = 100.0

    def monotonic(self) -> float:
        return self.now


@pytest.fixture
def clock(monkeypatch: pytest.MonkeyPatch) -> Clock:
    made = Clock()
    monkeypatch.setattr(spans, "time", made)
    return made


def test_time_belongs_to_the_work_that_is_reported_at_its_end_and_what_is_left_to_the_last(clock: Clock) -> None:
    step = Spans()
    for seconds, work in [(3.0, "rollout"), (1.0, "rollout"), (2.0, "reward"), (0.5, "rollout"), (4.0, "learner")]:
        clock.now += seconds
        step.reported(work)  # type: ignore[arg-type]
    clock.now += 0.25
    step.over("other")
    clock.now += 8.0
    step.over("evaluation")
    clock.now += 1.5
    step.over("saving")
    assert step.metrics() == {
        "perf/rollout_s": 4.5,
        "perf/reward_s": 2.0,
        "perf/learner_s": 4.25,
        "perf/evaluation_s": 8.0,
        "perf/saving_s": 1.5,
    }


def test_a_step_that_reports_nothing_spent_its_time_on_something_else(clock: Clock) -> None:
    step = Spans()
    clock.now += 2.0
    step.over("other")
    assert step.metrics() == {"perf/other_s": 2.0}
