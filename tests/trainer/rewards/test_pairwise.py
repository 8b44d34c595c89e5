"""Verdicts in both orders: every combination by hand."""

from itertools import product
from typing import Any

import pytest

from trainer.rewards.pairwise import remax_pairwise, swap_consistent


@pytest.mark.parametrize(
    ("sample_first", "sample_second", "reward"),
    [
        ("first", "second", 1),  # wins in both orders
        ("first", "first", 0.5),  # the judge takes the first answer in both orders
        ("second", "second", 0.5),
        ("second", "first", 0),  # loses in both
        ("tie", "second", 0.5),
        ("tie", "tie", 0),
        ("first", None, None),
        (None, "second", None),
    ],
)
def test_remax_counts_the_orders_that_the_sample_wins(sample_first, sample_second, reward) -> None:
    assert remax_pairwise(sample_first, sample_second) == reward


def test_only_what_both_orders_say_of_the_same_answer_is_kept() -> None:
    said: tuple[Any, ...] = ("A", "B", "tie", None)
    kept = {pair: label for pair in product(said, said) if (label := swap_consistent(*pair)) is not None}
    # "B" in swapped order is the answer that the pair calls A
    assert kept == {("A", "B"): "A", ("B", "A"): "B", ("tie", "tie"): "tie"}


def test_exchanging_the_answers_exchanges_the_label() -> None:
    other: dict[Any, Any] = {"A": "B", "B": "A", "tie": "tie", None: None}
    for one, two in product(other, other):
        assert swap_consistent(two, one) == other[swap_consistent(one, two)]
