"""A schedule that advances with the steps, without a model: the drawn phases, and the effect of a checkpoint of another run."""

import json
from collections.abc import Sequence
from typing import Any

import pytest

from trainer.config.sections.phase_kinds import PairPhase
from trainer.config.sections.phases import Phase
from trainer.curriculum import KnownPrompt, PromptOrder, Schedule
from trainer.loops.session.phases import PhaseWatch

KNOWN = [KnownPrompt(f"row-{n}", n / 5, frozenset(), ("even", "odd")[n % 2]) for n in range(6)]
ODD = PairPhase(step=2, prompts="some", domains=["odd"])
SLOWER = PairPhase(begins="plateau", window=4, metric="eval/accuracy", learning_rate="times", lr_times=0.5)


class Heard:
    def __init__(self) -> None:
        self.values: dict[str, float] = {}
        self.lines: list[str] = []

    def metrics(self, values: dict[str, float], *_: Any) -> None:
        self.values |= values

    def log(self, message: str, *_: Any) -> None:
        self.lines.append(message)


def watch(phases: Sequence[Phase]) -> PhaseWatch:
    return PhaseWatch(phases, Schedule(phases), PromptOrder(KNOWN, 3, True), 20)


def saved(found: PhaseWatch) -> Any:
    return json.loads(json.dumps(found.state_dict()))


def test_a_step_that_is_given_up_leaves_schedule_and_order_as_they_were() -> None:
    found = watch([ODD])
    before = saved(found)
    found.enter(2, Heard())  # type: ignore[arg-type]
    assert sorted(found.order.take(3)) == [1, 3, 5]
    found.load_state_dict(before)
    assert (found.schedule.began, found.order.drawn_from[0], sorted(found.order.take(6))) == ([], 0, [*range(6)])


def test_a_fork_without_the_phases_draws_from_all_again() -> None:
    first, fork = watch([ODD]), watch([])
    first.enter(2, Heard())  # type: ignore[arg-type]
    first.order.take(2)
    fork.load_state_dict(saved(first))
    fork.enter(3, Heard())  # type: ignore[arg-type]
    assert sorted(fork.order.take(6)) == [*range(6)]


def test_a_fork_with_another_pool_draws_from_that() -> None:
    first, fork = watch([ODD]), watch([ODD.model_copy(update={"domains": ["even"]})])
    first.enter(2, Heard())  # type: ignore[arg-type]
    fork.load_state_dict(saved(first))
    heard = Heard()
    fork.enter(3, heard)  # type: ignore[arg-type]
    assert sorted(fork.order.take(3)) == [0, 2, 4]
    assert heard.lines[0].startswith("the phases differ from those of the run that this one continues")
    assert heard.values == {"phase/number": 1.0, "rollout/pool": 3.0}


def test_a_phase_changes_the_order_and_a_fork_without_it_draws_as_configured_again() -> None:
    easy = PairPhase(step=2, order="easy_first")
    mixed = PairPhase(step=3, order="mixed", data_share=1.0, easy_share=1.0, prompts="some", domains=["odd"])
    found, plain = watch([easy, mixed]), PromptOrder(KNOWN, 3, True)
    assert found.order.take(2) == plain.take(2)
    heard = Heard()
    found.enter(2, heard)  # type: ignore[arg-type]
    assert found.order.take(6) == [5, 4, 3, 2, 1, 0]
    before = saved(found)
    found.enter(3, heard)  # type: ignore[arg-type]
    assert sorted(found.order.take(3)) == [1, 3, 5]
    assert heard.lines == [
        "phase 1 begins: from easy to hard",
        "phase 2 begins: domains odd, order: 50% by data, 50% from easy to hard; 3 of 6 prompts",
    ]
    found.load_state_dict(before)
    assert found.order.take(2) == [5, 4], "round again, all of them"
    fork = watch([])
    fork.load_state_dict(before)
    fork.enter(3, Heard())  # type: ignore[arg-type]
    assert fork.order.take(4) == plain.take(4)


def test_a_plateau_of_evaluations_counts_those_since_the_phase_before_and_no_step() -> None:
    found = watch([ODD, SLOWER])
    begun = {}
    for step in range(1, 21):
        found.enter(step, Heard())  # type: ignore[arg-type]
        begun[step] = found.schedule.number
        found.schedule.measured({"train/loss": 1.0})
        if step % 2 == 0:
            found.schedule.measured({"eval/accuracy": 0.5, "eval/loss": 1.0 / step})
    assert [step for step in begun if begun[step] != begun.get(step - 1, 0)] == [2, SLOWER.earliest(2, 2)] == [2, 9]
    assert found.schedule.lr_times == 0.5


@pytest.mark.parametrize(
    ("after", "every", "first"), [(0, 10, 31), (1, 10, 41), (10, 10, 41), (11, 10, 51), (3, 0, None)]
)
def test_the_earliest_step_of_a_plateau_of_evaluations(after: int, every: int, first: int | None) -> None:
    """Four values: those at 0, 10, 20, 30 if there was no phase before, otherwise those from the phase's first step on."""
    assert SLOWER.earliest(after, every) == first
