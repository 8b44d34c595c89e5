"""Comparisons on the same cases, by hand and in extreme cases."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from trainer.metrics.compare import keyed_difference, mcnemar, paired_difference, unpaired_difference


def test_the_difference_is_paired() -> None:
    # each has mean 1/2, but the second is higher by .1 on every case, so the paired difference is certain
    first = [i / 20 for i in range(20)]
    found = paired_difference(first, [x + 0.1 for x in first])
    assert found.value == pytest.approx(0.1)
    assert found.low == pytest.approx(0.1) and found.high == pytest.approx(0.1)


def test_cases_that_either_lacks_are_counted() -> None:
    found = paired_difference([True, False, None, True], [True, True, True, None])
    assert (found.value, found.n, found.missing) == (0.5, 2, 2)
    assert paired_difference([None], [1.0]).undefined == "no case has a value from both"
    assert paired_difference([], []).value is None
    by_key = keyed_difference({"a": 1.0, "b": 0.0}, {"b": 1.0, "c": 1.0})
    assert (by_key.value, by_key.n, by_key.missing) == (1.0, 1, 2)
    with pytest.raises(ValueError, match="2 values"):
        paired_difference([1, 2], [1])


def test_cases_of_one_prompt_are_drawn_together() -> None:
    first, second = [0.0] * 8, [1.0, 1.0, 1.0, 1.0, 0.0, 0.0, 0.0, 0.0]
    together = paired_difference(first, second, clusters=list("aaaabbbb"))
    assert (together.low, together.high) == (0, 1)  # two prompts show almost nothing


@given(st.lists(st.tuples(st.floats(-3, 3), st.floats(-3, 3)), min_size=1, max_size=20))
def test_turned_round_the_difference_changes_its_sign(rows) -> None:
    first, second = [a for a, _ in rows], [b for _, b in rows]
    there, back = paired_difference(first, second), paired_difference(second, first)
    assert there.value == pytest.approx(-(back.value or 0), abs=1e-12)


def test_mcnemar_by_hand() -> None:
    # 1 against 7 of 8: 2 (C(8,0) + C(8,1)) / 2^8 = 18/256
    first = [True] * 5 + [True] + [False] * 7 + [False] * 3 + [None]
    second = [True] * 5 + [False] + [True] * 7 + [False] * 3 + [True]
    found = mcnemar(first, second)
    assert (found.both, found.only_first, found.only_second, found.neither, found.missing) == (5, 1, 7, 3, 1)
    assert found.p == pytest.approx(18 / 256)
    assert mcnemar(second, first).p == found.p


def test_judges_that_are_right_together_differ_in_nothing() -> None:
    assert mcnemar([True, False], [True, False]).p == 1
    assert mcnemar([], []).p == 1


def test_an_unpaired_difference_resamples_each_side_by_itself() -> None:
    found = unpaired_difference([0.0, 1.0, None], [1.0, 1.0])
    assert (found.value, found.n, found.missing) == (0.5, 4, 1)
    assert (found.low, found.high) == (0.0, 1.0)
    same = [0.0, 1.0] * 20  # if both sides were drawn together, two equal sides would never differ
    assert (unpaired_difference(same, same).low or 0) < -0.1


def test_an_unpaired_difference_of_single_cases_has_no_interval() -> None:
    alone = unpaired_difference([0.25], [0.75])
    assert (alone.value, alone.low) == (0.5, None) and "no spread" in alone.interval
    assert unpaired_difference([None], [1.0]).undefined == "a side has no value"
