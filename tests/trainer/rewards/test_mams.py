"""The reward of a rubric writer: by hand, and with missing numbers."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from trainer.rewards.mams import mams_reward

numbers = st.floats(-10, 10)


def test_by_hand() -> None:
    assert mams_reward(0.8, 0.3, 3, True) == 1 + 3
    assert mams_reward(0.3, 0.8, 3, True) == -1 + 3
    assert mams_reward(0.3, 0.8, 3, False) == -1 + 3 - 1
    assert mams_reward(0.8, 0.3, 2, True, l_pref=0.5, l_llm=2) == 0.5 + 4


def test_a_tie_is_no_preference() -> None:
    assert mams_reward(0.5, 0.5, 0, True) == -1


def test_an_unreadable_rubric_has_the_lowest_reward() -> None:
    assert mams_reward(None, None, None, False) == -2
    assert mams_reward(None, None, 4, False) == -2  # the quality that a judge gave to unreadable text earns nothing
    assert mams_reward(None, None, None, False, l_pref=3) == -4


@pytest.mark.parametrize("given_", [(None, None, 2, True), (1, None, 2, True), (None, 1, 2, False), (1, 0, None, True)])
def test_a_missing_number_excludes_a_rubric_that_can_be_read(given_) -> None:
    assert mams_reward(*given_) is None


def test_a_term_of_weight_0_needs_no_number() -> None:
    assert mams_reward(1, 0, None, True, l_llm=0) == 1
    assert mams_reward(None, None, 3, True, l_pref=0) == 3


@given(numbers, numbers, st.floats(0, 4), st.booleans())
def test_the_sides_turn_the_preference_alone(chosen, rejected, quality, ok) -> None:
    one, other = mams_reward(chosen, rejected, quality, ok), mams_reward(rejected, chosen, quality, ok)
    assert one is not None and other is not None
    assert one + other == pytest.approx((0 if chosen != rejected else -2) + 2 * quality - 2 * (not ok))
    assert one >= mams_reward(None, None, None, False)
