"""Means of rationale consistency, shares of tags, and the agreement of two matchers. Tests of rewards test the matching itself."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from trainer.metrics.rationale import RationaleSample, consistency, correlation, reliability, shares

A, B = -1, 1


def sample(matrix: list[list[float]], human: int, label: int | None, verdict: int | None) -> RationaleSample:
    scores = np.array(matrix, dtype=float) if matrix else np.zeros((human, 0))
    return RationaleSample("", scores, human, label, verdict)


def test_means_by_hand() -> None:
    found = consistency(
        [
            sample([[1.0, 0.0], [0.0, 0.6]], 2, A, A),  # RC .8, AP 1, hybrid 1
            sample([[0.0, 0.8]], 1, A, B),  # RC .8, AP 1/2, hybrid 0
            sample([], 3, B, B),  # no model reasons: 0
            sample([], 0, B, None),  # excluded; its verdict is wrong
            sample([[1.0]], 1, None, B),  # RC and AP 1; no label, so neither hybrid nor accuracy
        ]
    )
    assert found.rc.value == pytest.approx((0.8 + 0.8 + 0 + 1) / 4)
    assert found.ap.value == pytest.approx((1 + 0.5 + 0 + 1) / 4)
    assert found.hybrid.value == pytest.approx(1 / 3)
    assert found.accuracy.value == pytest.approx(2 / 4)
    assert (found.rc.missing, found.hybrid.missing, found.accuracy.missing) == (1, 2, 1)
    counts = (found.excluded_no_human_reasons, found.no_model_reasons, found.missing_labels, found.missing_verdicts)
    assert (found.n, *counts) == (5, 1, 1, 1, 1)


def test_rc_is_cut_to_five_reasons_and_ap_is_not() -> None:
    late = [[0.0, 0.0, 0.0, 0.0, 0.0, 1.0]]
    found = consistency([sample(late, 1, A, A)])
    assert found.rc.value == 0
    assert found.ap.value == pytest.approx(1 / 6)


def test_the_threshold_can_be_the_papers_literal_0() -> None:
    weak = sample([[0.3]], 1, A, A)
    assert consistency([weak]).ap.value == 0
    assert consistency([weak], threshold=0.0).ap.value == 1


def test_without_samples_reasons_or_labels_the_reason_is_named() -> None:
    nothing = consistency([])
    assert nothing.rc.undefined == "no sample has human reasons"
    assert nothing.accuracy.undefined == "no sample has a label"
    bare = consistency([sample([], 0, None, A)])
    assert bare.hybrid.undefined == "no sample has human reasons and a label"
    assert consistency([sample([], 0, A, A)]).accuracy.value == 1


def test_all_verdicts_missing_is_all_wrong() -> None:
    found = consistency([sample([[1.0]], 1, A, None)] * 3)
    assert (found.accuracy.value, found.hybrid.value, found.rc.value) == (0, 0, 1)
    assert found.missing_verdicts == 3


@given(st.integers(1, 4), st.integers(0, 7), st.integers(0, 10**6))
def test_human_reasons_may_come_in_any_order_and_hybrid_never_exceeds_ap(humans, models, seed) -> None:
    generator = np.random.default_rng(seed)
    scores = generator.integers(0, 6, size=(humans, models)) / 5
    before = consistency([RationaleSample("", scores, humans, A, A)])
    after = consistency([RationaleSample("", scores[generator.permutation(humans)], humans, A, A)])
    assert after.rc.value == pytest.approx(before.rc.value) and after.ap.value == pytest.approx(before.ap.value)
    assert 0 <= before.hybrid.value <= before.ap.value <= 1 and before.rc.value <= 1


def test_shares_of_tags() -> None:
    found = shares([["F1", "F2"], ["F1"], [], None, "F1"], ["F1", "F2", "F3"])
    assert {name: (each.value, each.n, each.missing) for name, each in found.items()} == {
        "F1": (0.75, 4, 1),
        "F2": (0.25, 4, 1),
        "F3": (0.0, 4, 1),
    }
    with pytest.raises(ValueError, match="F9"):
        shares([["F9"]], ["F1"])


def test_reliability_by_hand() -> None:
    found = reliability({"a": 0.1, "b": 0.5, "c": 0.6, "d": 0.9}, {"a": 0.2, "b": 0.4, "c": 0.6, "e": 1.0})
    # squared errors .01 .01 0; second has mean .4, so SS_tot = .04 + 0 + .04
    assert found.rmse.value == pytest.approx((0.02 / 3) ** 0.5)
    assert found.r_squared.value == pytest.approx(1 - 0.02 / 0.08)
    assert found.ranking.value == pytest.approx(1)
    assert (found.ranking.n, found.ranking.missing) == (3, 2)
    assert reliability({"a": 0.1, "b": 0.3}, {"a": 0.5, "b": 0.5}).r_squared.undefined
    assert reliability({}, {}).rmse.undefined


@given(st.lists(st.tuples(st.integers(-9, 9), st.integers(-9, 9)), min_size=2, max_size=15))
def test_correlation_is_numpys(rows) -> None:
    x, y = np.array([a for a, _ in rows], float), np.array([b for _, b in rows], float)
    found = correlation(x, y)
    if x.std() == 0 or y.std() == 0:
        assert "same value" in found.undefined
    else:
        assert found.value == pytest.approx(np.corrcoef(x, y)[0, 1])
        assert correlation(x * 1e4 + 1e7, y).value == pytest.approx(found.value)
