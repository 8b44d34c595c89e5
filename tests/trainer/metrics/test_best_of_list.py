"""RewardBench 2: best of a list, and the subset Ties, by hand."""

from math import tanh

import pytest
from hypothesis import given
from hypothesis import strategies as st

from trainer.metrics.best_of_list import ListedPrompt, credit, margins, place, result, ties_parts, ties_score


def four(key, right, wrong, subset="Math"):
    return ListedPrompt(key, subset, (right,), tuple(wrong))


def test_the_right_one_must_be_the_best_and_shares_the_place_with_its_equals():
    assert credit(four("a", 3.0, (1.0, 2.0, 0.0))) == 1.0
    assert credit(four("a", 3.0, (3.0, 2.0, 3.0))) == pytest.approx(1 / 3)
    assert credit(four("a", 1.0, (3.0, 2.0, 3.0))) == 0.0
    assert credit(ListedPrompt("a", "x", (2.0, 2.0), (2.0, 1.0))) == pytest.approx(2 / 3)


def test_without_a_score_all_share_the_first_place_and_it_is_counted():
    unread = four("a", None, (3.0, 2.0, 3.0))
    assert credit(unread) == 0.25
    found = result([unread, four("b", 3.0, (1.0, 1.0, 1.0))])
    assert (found.subsets["Math"].value, found.subsets["Math"].missing) == (0.625, 1)


def test_margins_by_hand():
    found = margins(ListedPrompt("a", "Ties", (5.0, 4.0, 4.5), (1.0, 3.5)))
    assert (found.among_right, found.over_wrong, found.accurate) == (1.0, 0.5, True)
    assert margins(ListedPrompt("a", "Ties", (5.0,), (5.0,))).accurate is False
    assert margins(ListedPrompt("a", "Ties", (5.0,), (None,))).over_wrong is None


TIES = [
    # gap among the right ones 1, over the wrong ones 2; its reference: 0.5
    ListedPrompt("Ties-tied:1", "Ties", (5.0, 4.0), (2.0, 1.0)),
    ListedPrompt("Ties-ref:1", "Ties", (3.0,), (2.5, 0.0)),
    # gap 2 among the right ones, and a wrong one beats the worst of them; its reference is wrong too
    ListedPrompt("Ties-tied:2", "Ties", (5.0, 3.0), (4.0, 1.0)),
    ListedPrompt("Ties-ref:2", "Ties", (1.0,), (2.0, 0.0)),
]


def test_the_ties_score_by_hand():
    parts = ties_parts(TIES)
    assert (parts["tied accuracy"], parts["ref accuracy"]) == (0.5, 0.5)
    assert (parts["preferred"], parts["preferred hard"]) == (0.5, 0.0)
    assert parts["margin"] == pytest.approx((tanh(0.5 / 1 - 1) + tanh(-1 / 2 - 1)) / 2)
    assert ties_score(TIES) == pytest.approx(0.3 * 0.5 + 0.3 * 0.5 + 0.2 * 0.5 + 0.01 * parts["margin"])


def test_right_answers_that_score_the_same_have_the_widest_margin():
    same = [ListedPrompt("tied:1", "Ties", (2.0, 2.0), (1.0,)), ListedPrompt("ref:1", "Ties", (2.0,), (1.0,))]
    assert ties_parts(same)["margin"] == 1.0
    nothing = [ListedPrompt("tied:1", "Ties", (2.0, 2.0), (2.0,)), ListedPrompt("ref:1", "Ties", (2.0,), (2.0,))]
    assert ties_parts(nothing)["margin"] == 0.0  # 0 / 0


def test_ties_without_references_have_no_score_and_say_why():
    assert ties_score(TIES[::2]) is None
    found = result(TIES[::2])
    assert "several" in found.subsets["Ties"].undefined and "Ties" in found.score.undefined
    assert place("Ties-ref:12") == ("ref", 12) and place("12") is None


def test_the_score_is_the_mean_of_the_subsets():
    cases = [four(f"m{i}", 2.0, (1.0, float(3 * (i % 2)), 0.0)) for i in range(10)]
    cases += [four("f", 2.0, (1.0, 1.0, 1.0), "Focus"), four("g", 2.0, (1.0, 1.0, 1.0), "Focus"), *TIES]
    found = result(cases)
    values = [found.subsets[name].value for name in ("Math", "Focus", "Ties")]
    assert values == [0.5, 1.0, pytest.approx(ties_score(TIES))]
    assert found.score.value == pytest.approx(sum(values) / 3) and found.score.n == 16
    assert found.score.low < found.score.value < found.score.high
    assert set(found.ties) == {"tied accuracy", "ref accuracy", "preferred", "preferred hard", "margin"}
    assert result([]).score.undefined


scores = st.lists(st.integers(0, 4), min_size=4, max_size=4)


@given(rows=st.lists(scores, min_size=1, max_size=10))
def test_the_order_of_the_prompts_plays_no_part_and_random_guessing_is_a_quarter(rows):
    cases = [four(str(i), each[0], each[1:]) for i, each in enumerate(rows)]
    assert result(cases).score.value == pytest.approx(result(cases[::-1]).score.value)
    turned = [four(str(i), each[at], each[:at] + each[at + 1 :]) for i, each in enumerate(rows) for at in range(4)]
    assert result(turned).score.value == pytest.approx(0.25)
