"""Two precisions of the matcher are compared on known matches: how scores change, and what the rule decides."""

import pytest

from benchmarks.matcher_precision import ALL, as_good, compared

SIX = ["a", "a", "b", "b", "c", "c"]


def test_decisions_that_only_one_precision_has_right_are_told_from_those_that_both_have():
    narrow, wide = [True, False, True, True, False, False], [True, True, True, False, False, False]
    found = compared("made up", (narrow, SIX), (wide, SIX), seed=0)
    assert (found.n, found.questions, found.gained, found.lost) == (6, 3, 1, 1)
    assert found.float32 == found.bfloat16 == pytest.approx(0.5)
    assert found.low == pytest.approx(-0.5) and found.high == pytest.approx(0.5), "a question can be drawn three times"


def test_precisions_that_decide_alike_differ_by_nothing():
    same = [True, False, True, True, True, True], SIX
    found = compared(ALL, same, same, seed=0)
    assert (found.gained, found.lost, found.low, found.high) == (0, 0, 0.0, 0.0) and as_good([found])


def test_the_rule_asks_that_no_interval_lies_below_0_and_that_the_labelled_pairs_lose_little():
    right, wrong = ([True] * 6, SIX), ([False] * 6, SIX)
    assert not as_good([compared("made up", wrong, right, seed=0)]), "lost in every question"
    assert as_good([compared("made up", right, wrong, seed=0)])
    one_lost = ([False, True, True, True, True, True], SIX)
    assert as_good([compared("made up", one_lost, right, seed=0)]), "its interval holds 0"
    assert not as_good([compared(ALL, one_lost, right, seed=0)]), "and reaches below -0.02"
