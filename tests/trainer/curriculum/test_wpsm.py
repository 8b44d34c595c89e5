"""WPSM and AHRL by hand: which responses count as well learned, and how hints fade."""

import math

import pytest
from hypothesis import given
from hypothesis import strategies as st

from trainer.curriculum.ahrl import hint_share
from trainer.curriculum.wpsm import wpsm_weights


def test_only_sure_positive_responses_of_a_learned_prompt_are_scaled() -> None:
    entropies, advantages = [0.1, 0.1, 0.5, 0.1], [1, -1, 1, 0]
    assert wpsm_weights(0.9, entropies, advantages, 0.8, 0.5, 0.75) == [0.25, 1, 1, 1]


def test_on_a_threshold_nothing_is_scaled() -> None:
    assert wpsm_weights(0.8, [0.1], [1], 0.8, 0.5, 1) == [1]
    assert wpsm_weights(0.9, [0.5], [1], 0.8, 0.5, 1) == [1]
    assert wpsm_weights(0.9, [0.1], [0], 0.8, 0.5, 1) == [1]


def test_the_rate_over_the_run_decides_together_with_the_group_s_own() -> None:
    assert wpsm_weights(0.9, [0.1], [1], 0.8, 0.5, 1, kept=0.85) == [0]
    assert wpsm_weights(0.9, [0.1], [1], 0.8, 0.5, 1, kept=0.8) == [1]
    assert wpsm_weights(0.7, [0.1], [1], 0.8, 0.5, 1, kept=1.0) == [1]


def test_lists_of_different_lengths_are_an_error() -> None:
    with pytest.raises(ValueError, match="zip"):
        wpsm_weights(0.9, [0.1], [1, 1], 0.8, 0.5, 1)


def test_hints_fade_with_time_and_pass_rate() -> None:
    assert hint_share(0.5, 0.1, 0, 0.8) == 0.5
    assert hint_share(0.5, 0.1, 10, 1) == pytest.approx(0.5 / math.e)
    assert hint_share(0.5, 0.1, 10, 0.5) == pytest.approx(0.5 * math.exp(-0.5))
    assert hint_share(0.5, 0.1, 10**9, 0) == 0.5  # a prompt that cannot be solved keeps its hint
    assert hint_share(0.5, 1e308, 10**9, 0) == 0.5
    assert hint_share(0.5, 1e308, 10**9, 1) == 0


@given(st.floats(0, 1), st.floats(0, 2), st.integers(0, 1000), st.floats(0, 1))
def test_a_hint_only_shrinks(p0, gamma, t, pass0) -> None:
    assert p0 >= hint_share(p0, gamma, t, pass0) >= hint_share(p0, gamma, t + 1, pass0) >= 0
