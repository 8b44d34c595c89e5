"""How often prompts are solved, through a run."""

import json

import pytest

from trainer.curriculum import PassCounts


def test_a_rate_follows_the_policy() -> None:
    """keep 0.5. First 1 of 4, then 4 of 4: (0.5 + 4) / (2 + 4) = 0.75 of 6 responses; then 0 of 2: 2.25 / 5."""
    rates = PassCounts(0.5)
    assert rates.rate("a") is None and rates.responses("a") == 0
    rates.learned({"a": [True, False, False, False]})
    assert rates.rate("a") == 0.25 and rates.responses("a") == 4
    rates.learned({"a": [True] * 4})
    assert rates.rate("a") == 0.75 and rates.responses("a") == 6
    rates.learned({"a": [False, False]})
    assert rates.rate("a") == pytest.approx(2.25 / 5) and rates.responses("a") == 5


def test_without_memory_the_last_visit_counts_alone() -> None:
    rates = PassCounts(0.0)
    rates.learned({"a": [False] * 8})
    rates.learned({"a": [True, False]})
    assert rates.rate("a") == 0.5 and rates.responses("a") == 2


def test_a_visit_without_an_outcome_is_none() -> None:
    rates = PassCounts(0.5)
    rates.learned({"a": [True, False], "b": []})
    rates.learned({"a": []})
    assert rates.rate("a") == 0.5 and rates.responses("a") == 2 and rates.rate("b") is None


def test_prompts_move_between_solved_learnable_and_out_of_reach() -> None:
    rates = PassCounts(0.5)
    assert rates.reach() is None
    rates.learned({"a": [True] * 4, "b": [False] * 4, "c": [True, False], "d": [False, True, True, True]})
    reach = rates.reach()
    assert reach and (reach.solved, reach.learnable, reach.unsolved) == (0.25, 0.5, 0.25)
    for _ in range(2):  # the one failure of d now counts for a quarter: it is forgotten by and by
        rates.learned({"d": [True] * 4})
    assert (reach := rates.reach()) and (reach.solved, reach.learnable) == (0.5, 0.25)


def test_a_resumed_run_knows_what_the_whole_one_knows() -> None:
    whole, resumed = PassCounts(0.3), PassCounts(0.3)
    whole.learned({"a": [True, False, True], "b": [False]})
    resumed.load_state_dict(json.loads(json.dumps(whole.state_dict())))
    for rates in (whole, resumed):
        rates.learned({"a": [True], "b": [True, False]})
    assert resumed.state_dict() == whole.state_dict()
