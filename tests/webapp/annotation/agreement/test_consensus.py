"""The distance of answers, consensus and majority: by hand, and for any answers."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from webapp.annotation.agreement.consensus import agreement, majority, unanimous
from webapp.annotation.kinds import KINDS
from webapp.annotation.kinds.values import numbered

from ..answers import grades, preference, ranking, ratings, rubric

STRENGTHS = st.integers(-3, 3)


@pytest.mark.parametrize(
    ("one", "two", "expected"),
    [(2, 2, 1.0), (-3, 3, 0.0), (1, 2, 1 - 1 / 12), (-1, 1, 1 - (2 / 12 + 1 / 2)), (0, 1, 1 - (1 / 12 + 1 / 4))],
)
def test_steps_count_half_and_sides_the_other_half(one, two, expected):
    assert agreement("pairwise", [preference(one), preference(two)]) == pytest.approx(expected)


def test_opposite_sides_are_further_apart_than_as_many_steps_on_one_side():
    same_side = agreement("pairwise", [preference(1), preference(3)])
    assert agreement("pairwise", [preference(-1), preference(1)]) < same_side


def test_one_answer_has_no_agreement():
    assert agreement("pairwise", [preference(1)]) is None and unanimous("pairwise", [preference(1)]) is None


def test_cannot_assess_agrees_with_itself_only():
    missing = preference(None, verdict="cannot_assess")
    assert agreement("pairwise", [missing, missing]) == 1 and agreement("pairwise", [missing, preference(0)]) == 0


def test_two_people_who_call_both_bad_agree_also_if_one_says_which_is_less_bad():
    plain, less_bad = preference(None, verdict="both_bad"), preference(2, verdict="both_bad")
    assert agreement("pairwise", [plain, less_bad]) == agreement("pairwise", [plain, plain]) == 1
    assert majority("pairwise", [plain, less_bad])["verdict"] == "both_bad"
    assert unanimous("pairwise", [plain, less_bad]) is None  # a reviewer accepts it as the majority


def test_rankings_differ_by_the_pairs_they_order_otherwise():
    first, last = ranking("a", "b", "c"), ranking("c", "b", "a")
    assert agreement("ranking", [first, last]) == 0
    assert agreement("ranking", [first, ranking("a", "c", "b")]) == pytest.approx(2 / 3)
    assert agreement("ranking", [first, ranking("a b", "c")]) == pytest.approx(5 / 6)


def test_grades_count_the_criteria_judged_alike():
    assert agreement("grading", [grades(x="met", y="met"), grades(x="met", y="cannot_assess")]) == 0.5


def test_a_circle_is_no_order():
    circle = [ranking("a", "b", "c"), ranking("b", "c", "a"), ranking("c", "a", "b")]
    assert majority("ranking", circle) is None
    assert majority("ranking", [*circle[:2], ranking("a", "b", "c")])["tiers"] == [["a"], ["b"], ["c"]]


def test_two_of_four_are_no_majority():
    assert majority("pairwise", [preference(1), preference(1), preference(-1), preference(-1)]) is None
    assert majority("rating", [ratings(x=1), ratings(x=1), ratings(x=2), ratings(x=2)]) is None
    assert majority("rating", [ratings(x=None), ratings(x=None), ratings(x=2)])["ratings"] == {"x": None}


def test_the_majoritys_reasons_come_from_those_who_judged_so_each_once():
    answers = [preference(2, "names it", "short"), preference(1, "it names it"), preference(-2, "long")]
    groups = [[(0, 0), (1, 0)], [(0, 1)], [(2, 0)]]
    found = majority("pairwise", answers, groups)
    assert found["strength"] == 1 and [reason["text"] for reason in found["reasons"]] == ["names it", "short"]


def test_a_majority_of_pitfalls_is_no_rubric():
    answers = [rubric(("Invents", -5.0)) for _ in range(3)]
    assert majority("rubric", answers, [[(0, 0), (1, 0), (2, 0)]]) is None


def test_ids_shared_by_two_rubrics_are_counted_on():
    assert [each["id"] for each in numbered([{"id": "c1"}, {"id": "c1"}, {"id": "c1-2"}])] == ["c1", "c1-2", "c1-2-2"]


@given(st.lists(STRENGTHS, min_size=2, max_size=6))
def test_agreement_lies_between_0_and_1_whoever_comes_first(strengths):
    answers = [preference(strength) for strength in strengths]
    found = agreement("pairwise", answers)
    assert 0 <= found <= 1
    assert found == pytest.approx(agreement("pairwise", answers[::-1]))
    assert (found == 1) == (len(set(strengths)) == 1) == (unanimous("pairwise", answers) is not None)


@given(st.lists(STRENGTHS, min_size=1, max_size=7))
def test_a_majority_is_an_answer_on_the_side_of_more_than_half(strengths):
    found = majority("pairwise", [preference(strength) for strength in strengths])
    if found is None:
        return
    KINDS["pairwise"].answer.model_validate(found)
    sign = (found["strength"] > 0) - (found["strength"] < 0)
    assert 2 * sum(((s > 0) - (s < 0)) == sign for s in strengths) > len(strengths)
