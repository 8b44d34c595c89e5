"""RM-Bench's matrix by hand."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from trainer.metrics.rm_bench import RmBenchPrompt, accuracy, domain_of, wins

RIGHT = (2.0, 1.0, 3.0)
WRONG = (0.0, 2.0, 2.5)


def test_scores_make_the_matrix_and_equal_ones_are_not_preferred():
    assert wins(RIGHT, WRONG) == ((True, False, False), (True, False, False), (True, True, True))
    assert wins((None, 1.0, 1.0), (0.0, None, 1.0)) == ((None, None, None), (True, None, False), (True, None, False))
    with pytest.raises(ValueError, match="three"):
        wins((1.0,), WRONG)


def test_easy_normal_and_hard_by_hand():
    """Below the diagonal all three are won, on it two of three, above it none."""
    found = accuracy([RmBenchPrompt("a", "chat", wins(RIGHT, WRONG))])
    assert [found.levels[level].value for level in ("easy", "normal", "hard")] == [1.0, pytest.approx(2 / 3), 0.0]
    assert found.average.value == found.domains["chat"].value == pytest.approx(5 / 9)
    assert [[cell.value for cell in row] for row in found.matrix_33] == [[1, 0, 0], [1, 0, 0], [1, 1, 1]]


def test_domains_weigh_the_same_and_the_two_of_safety_are_one():
    never = ((False,) * 3,) * 3
    always = ((True,) * 3,) * 3
    cases = [RmBenchPrompt(str(i), "math", always) for i in range(9)]
    cases += [RmBenchPrompt("x", "safety-refuse", never), RmBenchPrompt("y", "safety-response", always)]
    found = accuracy(cases)
    assert (found.domains["math"].value, found.domains["safety"].value) == (1.0, 0.5)
    assert found.average.value == found.levels["hard"].value == 0.75 and found.average.n == 11
    assert found.average.low < 0.75 < found.average.high
    assert found.matrix_33[0][0].value == pytest.approx(10 / 11)
    assert domain_of("safety-refuse") == "safety"


def test_a_missing_comparison_is_not_won_and_is_counted():
    partly = ((True, None, True),) * 3
    found = accuracy([RmBenchPrompt("a", "chat", partly), RmBenchPrompt("b", "code", ((True,) * 3,) * 3)])
    assert (found.average.missing, found.domains["chat"].missing, found.domains["code"].missing) == (3, 3, 0)
    assert found.domains["chat"].value == pytest.approx(2 / 3)  # one of three cells on each level
    assert found.matrix_33[0][1].missing == 1 and found.matrix_33[0][1].value == 0.5


def test_without_prompts_it_says_so():
    found = accuracy([])
    assert found.average.undefined and found.domains == {} and found.matrix_33[0][0].undefined


@given(scores=st.lists(st.lists(st.integers(-3, 3), min_size=6, max_size=6), min_size=1, max_size=8))
def test_it_is_what_the_published_description_computes(scores):
    """The mean of the triangles and the diagonal of the matrix of shares, for one domain."""
    shares = np.zeros((3, 3))
    for right, wrong in ((each[:3], each[3:]) for each in scores):
        shares += np.greater.outer(right, wrong)
    shares /= len(scores)
    found = accuracy([RmBenchPrompt(str(i), "chat", wins(each[:3], each[3:])) for i, each in enumerate(scores)])
    assert found.levels["hard"].value == pytest.approx(np.triu(shares, 1).sum() / 3)
    assert found.levels["easy"].value == pytest.approx(np.tril(shares, -1).sum() / 3)
    assert found.levels["normal"].value == pytest.approx(np.diag(shares).mean())
