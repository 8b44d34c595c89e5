"""Rationale consistency: hand-worked matchings, ties, degenerate samples, and a brute-force oracle."""

from itertools import permutations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from trainer.rewards.rationale import average_precision, hybrid, match, outcome, rationale_consistency


def test_matching_is_one_to_one_and_heaviest() -> None:
    # a greedy matching would take 0.9 + 0.1 = 1.0; the best is 0.8 + 0.7 = 1.5
    scores = np.array([[0.9, 0.8], [0.7, 0.1]])
    assert match(scores).total == pytest.approx(1.5)
    assert match(scores).human_of_M == (1, 0)


def test_rc_divides_by_the_human_reasons() -> None:
    assert rationale_consistency(np.array([[0.9, 0.0], [0.0, 0.6], [0.0, 0.0]]), 3) == pytest.approx(0.5)


def test_rc_looks_at_the_first_five_model_reasons_and_ap_at_all() -> None:
    scores = np.zeros((1, 6))
    scores[0, 5] = 1.0
    assert rationale_consistency(scores, 1) == 0
    assert average_precision(scores, 1) == pytest.approx(1 / 6)


def test_average_precision_by_hand() -> None:
    # hits at ranks 1 and 3: (1/1 + 2/3) / 3 human reasons
    scores = np.array([[0.9, 0.0, 0.0], [0.0, 0.2, 0.0], [0.0, 0.0, 0.8]])
    assert average_precision(scores, 3) == pytest.approx((1 + 2 / 3) / 3)


def test_a_score_on_the_threshold_is_no_hit() -> None:
    assert average_precision(np.array([[0.5]]), 1) == 0
    assert average_precision(np.array([[0.5]]), 1, threshold=0) == 1


def test_among_equal_matchings_the_one_with_most_hits_is_taken() -> None:
    # both diagonals sum to 1.0: 0.5 + 0.5 has no hit, 0.6 + 0.4 has one
    assert match(np.array([[0.5, 0.6], [0.4, 0.5]])).hits_M == (False, True)


def test_among_matchings_with_equal_hits_the_earliest_is_taken() -> None:
    assert match(np.array([[0.7, 0.7, 0.7]])).hits_M == (True, False, False)


def test_degenerate_samples() -> None:
    assert rationale_consistency(np.zeros((0, 3)), 0) is None
    assert average_precision(np.zeros((0, 3)), 0) is None
    assert rationale_consistency(np.zeros((2, 0)), 2) == 0
    assert average_precision(np.zeros((2, 0)), 2) == 0
    assert hybrid(np.zeros((0, 0)), 0, 1, 1) is None


@pytest.mark.parametrize(
    ("label", "verdict", "right"), [(1, 2, 1), (-1, -2, 1), (1, -1, 0), (0, 0, 1), (1, None, 0), (1, 0, 0)]
)
def test_outcome_compares_signs(label: int, verdict: int | None, right: float) -> None:
    assert outcome(label, verdict) == right


def test_hybrid_pays_nothing_for_good_reasons_with_the_wrong_verdict() -> None:
    assert hybrid(np.array([[1.0]]), 1, label=1, verdict=-1) == 0
    assert hybrid(np.array([[1.0]]), 1, label=1, verdict=1) == 1


def test_scores_outside_the_unit_interval_are_refused() -> None:
    with pytest.raises(ValueError, match=r"\[0, 1\]"):
        match(np.array([[1.2]]))


@given(st.integers(1, 4), st.integers(1, 4), st.randoms(use_true_random=False))
def test_brute_force_agrees(humans: int, models: int, random) -> None:
    scores = np.array(
        [[random.choice([0, 0.2, 0.4, 0.5, 0.6, 0.8, 1.0]) for _ in range(models)] for _ in range(humans)]
    )
    best = max(_every_matching(scores), key=lambda m: (round(m[0], 9), sum(m[1]), m[1]))
    found = match(scores)
    assert found.total == pytest.approx(best[0])
    assert found.hits_M == best[1]


def _every_matching(scores: np.ndarray) -> list[tuple[float, tuple[bool, ...]]]:
    humans, models = scores.shape
    size = max(humans, models)
    padded = np.zeros((size, size))
    padded[:humans, :models] = scores
    return [
        (
            float(sum(padded[h, m] for m, h in enumerate(order))),
            tuple(bool(padded[order[m], m] > 0.5) for m in range(models)),
        )
        for order in permutations(range(size))
    ]
