"""Voting@k, by hand."""

import pytest

from trainer.loops.roles.voting import majority, summary


@pytest.mark.parametrize(
    ("votes", "right"),
    [([True, True, False], 1), ([True, False, False], 0), ([True, False], 0), ([], 0), ([True], 1)],
)
def test_more_than_half_of_the_votes_decide(votes: list[bool], right: float) -> None:
    assert majority(votes) == right


def test_a_pair_counts_once_and_missing_votes_are_counted() -> None:
    pairs = [
        [[True, True, False], [True, False, False]],  # right in one of two orders
        [[True, True, True], [True]],  # right in both, two votes missing
        [[], [False, False, False]],  # three votes missing
    ]
    found = summary(pairs, ["a", "b", "c"], 3)
    assert found["eval/voting"] == pytest.approx((0.5 + 1 + 0) / 3)
    assert (found["eval/votes"], found["eval/votes_missing"]) == (13, 5)
    assert found["eval/voting_low"] <= found["eval/voting"] <= found["eval/voting_high"]
