"""Toggle: budgets by hand, the phases, and when a budget is enforced."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from trainer.curriculum.toggle import budget_phase, toggle_budget, toggle_rewards


def test_the_budget_is_a_linear_quantile_of_the_correct_lengths() -> None:
    lengths, rewards = [10, 20, 30, 1000, 5], [1, 1, 1, 0, None]
    assert toggle_budget(lengths, rewards, 0.5) == 20
    assert toggle_budget(lengths, rewards, 0.25) == 15
    assert toggle_budget(lengths, rewards, 0) == 10
    assert toggle_budget(lengths, rewards, 1) == 30
    assert toggle_budget([7], [1], 0.3) == 7


def test_what_counts_as_correct_can_be_said() -> None:
    assert toggle_budget([10, 20, 30], [0.5, 0.7, 0.4], 1.0, 0.5) == 20


def test_without_a_correct_response_there_is_no_budget() -> None:
    assert toggle_budget([10, 20], [0, 0.9], 0.5) is None
    assert toggle_budget([10], [None], 0.5) is None


def test_the_first_m_iterations_are_a_budget_phase() -> None:
    assert [budget_phase(t, 3) for t in range(9)] == [True] * 3 + [False] * 3 + [True] * 3


@pytest.mark.parametrize(
    ("t", "lam", "kept"),
    [
        (0, 0.5, [1, 0, 0, 0]),  # the mean is 0.5: if it reaches lambda, the budget is enforced
        (0, 0.51, [1, 0, 1, 0]),  # below lambda the budget is not enforced
        (1, 0.5, [1, 0, 0, 0]),
        (2, 0.5, [1, 0, 1, 0]),  # the other phase
        (4, 0.5, [1, 0, 0, 0]),
    ],
)
def test_long_responses_lose_their_reward_in_a_budget_phase(t, lam, kept) -> None:
    assert toggle_rewards([1, 0, 1, 0], [100, 100, 101, 300], 100, t, 2, lam) == kept


def test_a_mean_or_a_length_that_differs_by_rounding_is_on_the_bound() -> None:
    assert toggle_rewards([0.1, 0.2, 0.3], [9, 9, 9], 5, 0, 1, 0.2) == [0, 0, 0]
    assert toggle_rewards([1, 1], [3, 4], 3 - 1e-12, 0, 1, 0.5) == [1, 0]


def test_without_a_budget_or_a_reward_nothing_changes() -> None:
    assert toggle_rewards([1, 1], [3, 400], None, 0, 1, 0.5) == [1, 1]
    assert toggle_rewards([None, None], [3, 400], 10, 0, 1, 0.5) == [None, None]


def test_a_missing_reward_stays_missing_and_is_no_part_of_the_mean() -> None:
    assert toggle_rewards([1, None, 1], [3, 400, 400], 10, 0, 1, 1.0) == [1, None, 0]


@given(
    st.lists(st.tuples(st.sampled_from([0.0, 1.0, None]), st.integers(0, 50)), min_size=1, max_size=8),
    st.floats(0, 1),
    st.integers(0, 20),
    st.integers(1, 4),
    st.sampled_from([0, 0.25, 0.5, 1]),
)
def test_an_oracle_of_the_printed_formula_agrees(group, rho, t, m, lam) -> None:
    rewards, lengths = [reward for reward, _ in group], [length for _, length in group]
    budget = toggle_budget(lengths, rewards, rho)
    correct = sorted(length for reward, length in group if reward == 1)
    if not correct:
        assert budget is None
        return
    place = rho * (len(correct) - 1)
    low = int(place)
    high = min(low + 1, len(correct) - 1)
    assert budget == pytest.approx(correct[low] + (place - low) * (correct[high] - correct[low]))
    known = [reward for reward in rewards if reward is not None]
    for reward, length, got in zip(rewards, lengths, toggle_rewards(rewards, lengths, budget, t, m, lam), strict=True):
        free = (t // m) % 2 == 1 or float(np.mean(known)) < lam or length <= budget + 1e-9
        assert got == (reward if free or reward is None else 0)
