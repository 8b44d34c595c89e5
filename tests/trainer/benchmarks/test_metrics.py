"""Metrics of many responses to one prompt, by hand and against brute force."""

import math
from itertools import combinations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from trainer.benchmarks import metrics


def test_pass_at_k_by_hand() -> None:
    # 4 responses, 1 correct, 2 drawn: 3 of the 6 pairs hold it
    assert metrics.pass_at_k(4, 1, 2) == 0.5
    assert metrics.pass_at_k(4, 0, 4) == 0
    assert metrics.pass_at_k(4, 3, 2) == 1
    assert metrics.pass_at_k(10**4, 1, 100) == pytest.approx(0.01)


@pytest.mark.parametrize(("n", "c", "k"), [(4, 5, 1), (4, -1, 1), (4, 1, 0), (4, 1, 5)])
def test_pass_at_k_refuses_what_has_no_estimate(n: int, c: int, k: int) -> None:
    with pytest.raises(ValueError, match="responses"):
        metrics.pass_at_k(n, c, k)


@given(st.lists(st.floats(-2, 2), min_size=1, max_size=7), st.data())
def test_best_of_n_is_the_mean_over_all_draws(scores: list[float], data: st.DataObject) -> None:
    n = data.draw(st.integers(1, len(scores)))
    expected = np.mean([max(draw) for draw in combinations(scores, n)])
    assert metrics.best_of_n(scores, n) == pytest.approx(float(expected), abs=1e-12)


def test_best_of_n_of_right_and_wrong_is_pass_at_n() -> None:
    for n in range(1, 7):
        assert metrics.best_of_n([1, 0, 0, 1, 0, 0], n) == pytest.approx(metrics.pass_at_k(6, 2, n))


def test_best_of_n_does_not_guess_a_missing_score() -> None:
    with pytest.raises(ValueError, match="missing"):
        metrics.best_of_n([1, math.nan], 1)


def test_entropy() -> None:
    # uniform over 4; certain; one half, one half and an impossible token
    found = metrics.entropy([[0, 0, 0, 0], [1000, 0, 0, 0], [5, 5, -math.inf, -math.inf]])
    assert found.tolist() == pytest.approx([math.log(4), 0, math.log(2)])


def test_novelty_by_hand() -> None:
    # means of the differences: log 3, log 20, 0; the empty response says nothing
    found = metrics.novelty(
        [[math.log(3), math.log(3)], [math.log(20)], [-1.0, -2.0], []], [[0, 0], [0], [-2.0, -1.0], []]
    )
    assert found.ratios == pytest.approx((3, 20, 1))
    assert found.median == pytest.approx(3)
    assert found.above == {2.0: 2, 10.0: 1, 100.0: 0}
    assert math.isnan(metrics.novelty([[]], [[]]).median)
    with pytest.raises(ValueError, match=r"logp_initial\[0\]: 1 tokens, logp has 2"):
        metrics.novelty([[0, 0]], [[0]])


def test_self_bleu_diversity() -> None:
    same = ["the cat sat on the mat today"] * 3
    assert metrics.self_bleu_diversity(same) == pytest.approx(0, abs=1e-12)
    different = ["alpha beta gamma delta", "one two three four", "red green blue black"]
    assert metrics.self_bleu_diversity(different) > 0.9
    half = ["the cat sat on the mat", "the cat sat on a chair", "my dog ran to the park"]
    assert 0.3 < metrics.self_bleu_diversity(half) < 0.9
    assert math.isnan(metrics.self_bleu_diversity(["alone"]))


@given(st.integers(2, 6), st.integers(0, 99))
def test_embedding_diversity_is_the_mean_over_pairs(count: int, seed: int) -> None:
    vectors = np.random.default_rng(seed).normal(size=(count, 5))
    pairs = [1 - a @ b / np.linalg.norm(a) / np.linalg.norm(b) for a, b in combinations(vectors, 2)]
    assert metrics.embedding_diversity(vectors) == pytest.approx(np.mean(pairs), abs=1e-12)


def test_embedding_diversity_at_its_ends() -> None:
    assert metrics.embedding_diversity([[1, 0], [2, 0]]) == pytest.approx(0)
    assert metrics.embedding_diversity([[1, 0], [-3, 0]]) == pytest.approx(2)
    assert math.isnan(metrics.embedding_diversity([[1, 0]]))
    with pytest.raises(ValueError, match=r"embeddings\[1\]"):
        metrics.embedding_diversity([[1, 0], [0, 0]])
