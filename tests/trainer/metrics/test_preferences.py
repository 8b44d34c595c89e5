"""Measures of scores on pairs: by hand, the degenerate ones, and changes that must not matter."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from numpy.typing import NDArray

from trainer.metrics.estimate import proportion, wilson
from trainer.metrics.preferences import accuracy, accuracy_by, baseline, ceiling, length_correlation, longer_is_worse


def test_a_margin_of_nothing_is_not_right() -> None:
    found = accuracy([1.0, 0.0, -1.0, 2.0])
    assert found.value == 0.5 and (found.low, found.high) == pytest.approx(wilson(0.5, 4))
    assert accuracy([]).value is None


def test_pairs_of_one_prompt_are_drawn_together() -> None:
    """Of two prompts, each is drawn twice in a quarter of the resamples, so both ends are there."""
    margins, prompts = [1.0, 2.0, 1.0, -1.0], "pppq"
    found = accuracy(margins, prompts)
    assert (found.value, found.n, found.low, found.high) == (0.75, 4, 0.0, 1.0)
    assert accuracy(margins, "pqrs") == accuracy(margins) == proportion(3, 4)
    alone = accuracy(margins[:3], "ppp")
    assert (alone.value, alone.low, alone.interval) == (1.0, None, "one group has no spread")
    sure = accuracy([1.0] * 6, "ppqqrr")  # three prompts that say the same
    assert (sure.value, sure.n) == (1.0, 6) and (sure.low, sure.high) == pytest.approx(wilson(1.0, 3))
    by = accuracy_by(["x", "x", "y", "x"], margins, prompts)
    assert by["x"] == accuracy([1.0, 2.0, -1.0], "ppq") and by["y"] == proportion(1, 1)
    lengths = [(1, 9), (1, 9), (9, 1), (1, 9)]
    assert longer_is_worse(lengths, margins, prompts) == accuracy([1.0, 2.0, -1.0], "ppq")


def test_the_interval_is_that_of_prompts_drawn_by_hand() -> None:
    draw = np.random.default_rng(3)
    prompts = np.repeat(np.arange(60), draw.integers(1, 9, 60))
    margins = draw.normal(0.4, 1.0, 60)[prompts] + 0.3 * draw.normal(size=len(prompts))
    lengths = [(int(a), int(b)) for a, b in draw.integers(1, 90, (len(prompts), 2))]
    lead = np.log([(a + 1) / (b + 1) for a, b in lengths])
    kept = [np.flatnonzero(prompts == prompt) for prompt in range(60)]
    drawn = [np.concatenate([kept[at] for at in draw.integers(60, size=60)]) for _ in range(4000)]

    def correlation(at: NDArray[np.intp]) -> float:
        return float(margins[at] @ lead[at] / np.sqrt(margins[at] @ margins[at] * (lead[at] @ lead[at])))

    for found, by_hand in (
        (accuracy(margins.tolist(), prompts.tolist()), [np.mean(margins[at] > 0) for at in drawn]),
        (length_correlation(lengths, margins.tolist(), prompts.tolist()), [correlation(at) for at in drawn]),
    ):
        assert (found.low, found.high) == pytest.approx(tuple(np.quantile(by_hand, [0.025, 0.975])), abs=0.012)
    found, alone = accuracy(margins.tolist(), prompts.tolist()), accuracy(margins.tolist())
    assert found.low is not None and found.high is not None and alone.low is not None and alone.high is not None
    assert found.high - found.low > 1.5 * (alone.high - alone.low)


def test_slices_keep_what_is_in_none_apart() -> None:
    found = accuracy_by(["x", None, "y", "x"], [1.0, -1.0, -1.0, -1.0])
    assert {name: (each.value, each.n) for name, each in found.items()} == {"x": (0.5, 2), "y": (0.0, 1)}


def test_only_pairs_whose_rejected_answer_is_much_longer_count_there() -> None:
    lengths = [(10, 15), (10, 14), (20, 10), (0, 1)]
    assert (longer_is_worse(lengths, [1.0, -1.0, -1.0, -1.0]).value, longer_is_worse(lengths, [1.0] * 4).n) == (0.5, 2)


def test_scores_that_are_log_lengths_correlate_wholly_with_them() -> None:
    import math

    lengths = [(9, 4), (3, 7), (1, 0)]
    margins = [math.log((c + 1) / (r + 1)) for c, r in lengths]
    assert length_correlation(lengths, margins).value == pytest.approx(1.0)
    assert length_correlation(lengths, [-m for m in margins]).value == pytest.approx(-1.0)
    assert length_correlation([(3, 3)], [1.0]).value is None


@given(st.lists(st.tuples(st.integers(0, 50), st.integers(0, 50), st.floats(-5, 5)), min_size=2), st.data())
def test_which_answer_comes_first_does_not_matter_to_the_correlation(
    rows: list[tuple[int, int, float]], data: st.DataObject
) -> None:
    turns = data.draw(st.lists(st.booleans(), min_size=len(rows), max_size=len(rows)))
    turned = [(r, c, -m) if turn else (c, r, m) for (c, r, m), turn in zip(rows, turns, strict=True)]
    one, two = (length_correlation([(c, r) for c, r, _ in x], [m for *_, m in x]).value for x in (rows, turned))
    assert one == two or one == pytest.approx(two)


def test_one_rater_against_the_majority_of_the_others() -> None:
    assert ceiling([(5, 0)]).value == 1.0
    found = ceiling([(3, 1)])  # each of the three sees 2:1 for it, the one sees 3:0 against it
    assert (found.value, found.n) == (0.75, 4)
    assert ceiling([(2, 1)]).n == 1  # the two see one against one; the one sees two against
    assert ceiling([(1, 1)]).value == 0.0 and ceiling([(1, 0)]).value is None


def test_a_baseline_takes_its_direction_from_the_training_pairs() -> None:
    train = [(1, 2), (1, 3), (5, 4)]
    found = baseline(train, [(1, 2), (2, 1), (3, 3), (0, 9)])
    assert (found.value, found.n) == (2.5 / 4, 4)
    assert baseline(train, []).value is None
