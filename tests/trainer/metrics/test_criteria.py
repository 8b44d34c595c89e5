"""A criterion judge against people, worked by hand."""

import pytest

from trainer.metrics.criteria import agreement

# people: 5 met, 4 not met, 1 left open; the judge: 3 hits, 1 miss, 1 missing; 1 false alarm, 3 right rejections
PEOPLE = [True, True, True, True, True, False, False, False, False, None]
JUDGE = [True, True, True, False, None, True, False, False, False, True]


def test_the_cells_and_what_follows_from_them():
    found = agreement(PEOPLE, JUDGE)
    assert found.table.cells_VV == ((3, 1), (1, 3)) and found.table.missing_V == (0, 1)
    assert (found.table.n, found.table.unlabelled) == (9, 1)
    assert (found.accuracy.value, found.accuracy.n, found.accuracy.missing) == (pytest.approx(6 / 9), 9, 1)
    assert (found.precision.value, found.precision.n) == (0.75, 4)
    assert (found.recall.value, found.recall.n) == (pytest.approx(3 / 5), 5)
    # observed 6/8, chance (4*4 + 4*4) / 64 = 1/2
    assert (found.kappa.value, found.kappa.n) == (pytest.approx(0.5), 8)
    assert found.lean.value == 0.0


def test_a_judge_that_calls_more_met_than_people_do_leans_above_zero():
    assert agreement([True, False, False, False], [True, True, False, False]).lean.value == 0.25


def test_what_belongs_to_one_prompt_is_resampled_together():
    people, judge = [True] * 20 + [False] * 20, [True] * 20 + [True] * 10 + [False] * 10
    apart = agreement(people, judge).accuracy
    together = agreement(people, judge, [at // 10 for at in range(40)]).accuracy
    assert apart.value == together.value == 0.75
    assert together.low < apart.low < apart.high < together.high


def test_one_value_throughout_leaves_kappa_undefined_and_says_so():
    found = agreement([True, True], [True, True])
    assert (
        found.accuracy.value == 1.0 and found.kappa.value is None and "the same of everything" in found.kappa.undefined
    )


def test_nothing_judged_and_nothing_graded_are_undefined_not_zero():
    silent = agreement([True, False], [None, None])
    assert (silent.accuracy.value, silent.accuracy.missing) == (0.0, 2)
    assert silent.kappa.value is None and silent.precision.value is None and silent.lean.value is None
    open_ = agreement([None, None], [True, False])
    assert open_.accuracy.value is None and open_.table.unlabelled == 2


def test_sequences_of_different_lengths_are_refused():
    with pytest.raises(ValueError, match="2 labels but 1 verdicts"):
        agreement([True, False], [True])
