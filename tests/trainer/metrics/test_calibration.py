"""Calibration: a diagram by hand, and the results of a perfect and of a useless forecaster."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from trainer.metrics.calibration import calibration


def test_by_hand() -> None:
    # .6 .6 .6 .6: 3 of 4 happened, off by .15; 1.0: did not happen, off by 1
    found = calibration([0.6, 0.6, 0.6, 0.6, 1.0], [True, True, True, False, False], bins=5)
    assert found.error.value == pytest.approx((4 * 0.15 + 1 * 1.0) / 5)
    assert found.brier.value == pytest.approx((3 * 0.16 + 0.36 + 1) / 5)
    assert [each.happened.n for each in found.bins] == [0, 0, 4, 0, 1]
    assert found.bins[2].stated == pytest.approx(0.6) and found.bins[2].happened.value == 0.75
    assert found.bins[0].stated is None and found.bins[0].happened.undefined == "no case in this bin"


def test_ends_belong_to_the_first_and_last_bin() -> None:
    assert [each.happened.n for each in calibration([0.0, 1.0], [False, True], bins=2).bins] == [1, 1]


def test_missing_probabilities_and_outcomes_are_counted() -> None:
    found = calibration([0.5, None, 0.5], [True, True, None])
    assert (found.error.n, found.error.missing, found.brier.missing) == (1, 2, 2)
    nothing = calibration([None], [None])
    assert nothing.error.undefined == nothing.brier.undefined == "no case has a probability and an outcome"


def test_cases_of_one_cluster_are_drawn_together() -> None:
    """Of two clusters, each is drawn twice in a quarter of the resamples: both ends are the clusters' own errors."""
    found = calibration([0.75, 0.75, 0.5, None], [True, True, False, True], 2, clusters_C="ppqq")
    assert (found.brier.value, found.brier.low, found.brier.high) == pytest.approx((0.375 / 3, 0.0625, 0.25))
    assert (found.error.low, found.error.high) == pytest.approx((0.25, 0.5))
    assert calibration([0.75, 0.5], [True, False], clusters_C="pq") == calibration([0.75, 0.5], [True, False])


def test_what_is_no_probability_is_refused() -> None:
    with pytest.raises(ValueError, match=r"\[0, 1\]"):
        calibration([1.5], [True])
    with pytest.raises(ValueError, match="1 probabilities but 2"):
        calibration([0.5], [True, False])


@given(st.lists(st.tuples(st.floats(0, 1), st.booleans()), min_size=1, max_size=30), st.integers(1, 12))
def test_errors_lie_between_0_and_1_and_every_case_in_one_bin(rows, bins) -> None:
    found = calibration([p for p, _ in rows], [y for _, y in rows], bins)
    assert 0 <= found.error.value <= 1 and 0 <= found.brier.value <= 1
    assert sum(each.happened.n for each in found.bins) == len(rows)


@given(st.lists(st.booleans(), min_size=1, max_size=20))
def test_who_knows_is_never_off(outcomes) -> None:
    right = calibration([float(y) for y in outcomes], outcomes)
    assert right.error.value == right.brier.value == 0
    wrong = calibration([float(not y) for y in outcomes], outcomes)
    assert wrong.error.value == wrong.brier.value == 1
