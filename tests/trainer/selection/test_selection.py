"""K-center and sliding perplexity: by hand, compared with plain loops, with ties and invariances."""

from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from trainer.selection import k_center, sliding_perplexity


def test_k_center_by_hand() -> None:
    # first the highest ppl (2), then the largest ppl x distance to it: 1 is opposite (1 x 2), 3 at a right angle (1.5 x 1)
    embeddings: Any = [[1, 0.1], [-1, 0], [1, 0], [0, 1]]
    assert k_center(embeddings, [1, 1, 3, 1.5], 3) == [2, 1, 3]


def test_perplexity_weighs_the_distance() -> None:
    assert k_center([[1, 0], [-1, 0], [0, 1]], [9, 1, 3], 2) == [0, 2]  # 3 x 1 beats 1 x 2


def test_ties_go_to_the_lowest_index_and_duplicates_come_last() -> None:
    assert k_center([[1, 0], [0, 1], [0, -1]], [1, 1, 1], 3) == [0, 1, 2]
    # three in one direction, except for rounding
    same = [[0.1, 0.2, 0.3], [0.2, 0.4, 0.6], [0.3, 0.6, 0.9], [3, -1, 0.5]]
    assert k_center(same, [1, 1, 1, 1], 4) == [0, 3, 1, 2]


def test_lengths_of_embeddings_do_not_matter() -> None:
    assert k_center([[1e-200, 0.0], [0.0, 1e200], [1.0, 1.0]], [1, 2, 1], 3) == [1, 0, 2]


def test_float32_embeddings_are_taken_as_they_are() -> None:
    rng = np.random.default_rng(0)
    embeddings, ppl = rng.standard_normal((50, 8)), rng.random(50) + 0.5
    assert k_center(embeddings.astype(np.float32), ppl, 10) == k_center(embeddings, ppl, 10)


@pytest.mark.parametrize(
    ("embeddings", "ppl", "k", "said"),
    [
        ([[1, 0], [0, 0]], [1, 1], 1, r"embeddings\[1\]: a zero vector"),
        ([[1, 0]], [1, 1], 1, "ppl: 2 values for 1"),
        ([[1, 0], [0, 1]], [1, -1], 1, r"ppl\[1\]"),
        ([[1, 0]], [1], 2, "k: 2 of 1"),
        ([[1, 0]], [1], 0, "k: 0 of 1"),
    ],
)
def test_what_has_no_choice_is_refused(embeddings, ppl, k, said) -> None:
    with pytest.raises(ValueError, match=f"^{said}"):
        k_center(embeddings, ppl, k)


vectors = st.lists(st.sampled_from([-2, -1, 1, 2, 3]), min_size=3, max_size=3)


@given(st.lists(st.tuples(vectors, st.integers(0, 4)), min_size=1, max_size=8))
def test_plain_loops_agree(rows) -> None:
    embeddings, ppl = [row for row, _ in rows], [p for _, p in rows]

    def distance(a, b) -> float:
        dot = sum(x * y for x, y in zip(a, b, strict=True))
        return round(1 - dot / (sum(x * x for x in a) * sum(y * y for y in b)) ** 0.5, 10)

    picked = [max(range(len(rows)), key=lambda i: (ppl[i], -i))]
    while len(picked) < len(rows):
        left = [i for i in range(len(rows)) if i not in picked]
        weighted = {i: round(ppl[i] * min(distance(embeddings[i], embeddings[j]) for j in picked), 9) for i in left}
        picked.append(max(left, key=lambda i: (weighted[i], -i)))
    assert k_center(embeddings, ppl, len(rows)) == picked


def test_sliding_perplexity_by_hand() -> None:
    logp = [-1, -5, -1, -4, -4]
    assert sliding_perplexity(logp, 1) == 5
    assert sliding_perplexity(logp, 2) == 4  # the last two; windows side by side would see 3, 2.5 and miss this one
    assert sliding_perplexity(logp, 3) == pytest.approx(10 / 3)
    assert sliding_perplexity(logp, 5) == 3


def test_a_shorter_text_is_one_window_and_an_empty_one_has_none() -> None:
    assert sliding_perplexity([-1, -2]) == 1.5
    assert sliding_perplexity([-1, -2], 3) == 1.5
    assert sliding_perplexity([]) is None


@given(st.lists(st.floats(-50, 0), min_size=1, max_size=30), st.integers(1, 40))
def test_every_window_is_looked_at(logp, window) -> None:
    width = min(window, len(logp))
    means = [-sum(logp[i : i + width]) / width for i in range(len(logp) - width + 1)]
    assert sliding_perplexity(logp, window) == pytest.approx(max(means), abs=1e-9)
    assert sliding_perplexity(logp, window) >= -np.mean(logp) - 1e-9 or width < len(logp)


@pytest.mark.parametrize("kind", ["spread", "clustered", "ties"])
def test_batches_pick_what_one_pick_after_another_would(kind: str) -> None:
    """4,000 examples: more than the front holds, and picks for several batches."""
    draw = np.random.default_rng(5)
    vectors = draw.standard_normal((4_000, 8))
    if kind == "clustered":
        vectors = draw.standard_normal((20, 8))[draw.integers(0, 20, 4_000)] + vectors * 0.05
    ppl = draw.uniform(1, 20, 4_000) if kind != "ties" else draw.integers(1, 3, 4_000).astype(float)
    if kind == "ties":
        vectors = np.round(vectors)
        vectors[~vectors.any(axis=1)] = 1.0

    unit = vectors / np.linalg.norm(vectors, axis=1, keepdims=True)
    nearest, picked = np.full(4_000, 2.0), [int(np.argmax(ppl))]
    while len(picked) < 600:
        nearest = np.minimum(nearest, np.maximum(np.round(1 - unit @ unit[picked[-1]], 12), 0))
        nearest[picked] = -1.0
        values = np.where(nearest < 0, -1.0, ppl * nearest)
        picked.append(int(np.argmax(values >= values.max() * (1 - 1e-12))))
    assert k_center(vectors, ppl, 600) == picked
