"""Audits of pairwise judges: hand-worked verdicts in both orders, slices, votes, and the human range."""

from itertools import combinations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from trainer.metrics.audit import (
    AuditCase,
    audit,
    by_slice,
    format_slice,
    formatting,
    human_range,
    length_slice,
    measures,
    vote,
    voting_curve,
)
from trainer.metrics.estimate import Estimate

A, TIE, B = -1, 0, 1
SIDES = st.sampled_from([A, TIE, B, None])
CASES = st.lists(st.tuples(st.sampled_from([A, TIE, B]), SIDES, SIDES), min_size=1, max_size=12)


def case(label: int, given: int | None, swapped: int | None, pair: str = "p") -> AuditCase:
    return AuditCase("judge", pair, "", label, given, swapped)


def test_swapped_verdicts_are_read_as_said() -> None:
    found = measures([case(A, given=A, swapped=B)])  # in swapped order, B is the response called A elsewhere
    assert found.accuracy_both.value == 1
    assert found.order_consistency.value == 1


def test_by_hand() -> None:
    cases = [case(A, A, B), case(A, A, A), case(B, TIE, A), case(B, A, None), case(A, None, None), case(TIE, TIE, TIE)]
    found = measures(cases)
    assert found.n == 6
    assert found.missing == {"given": 1, "swapped": 2, "either": 2, "both": 1}
    assert found.accuracy_given.value == pytest.approx(3 / 6)  # A, A and the tie
    assert found.accuracy_swapped.value == pytest.approx(3 / 6)  # first, third, last
    assert found.accuracy_both.value == pytest.approx(2 / 6)
    assert found.accuracy_net.value == pytest.approx(3 / 6)  # votes: 2, 0, 0 + 1, -1, 0, 2
    assert found.accuracy_random.value == pytest.approx(3 / 6)
    assert found.accuracy_net.missing == 2 and found.accuracy_net.n == 6
    assert (found.order_consistency.n, found.order_consistency.missing) == (4, 2)
    assert found.order_consistency.value == pytest.approx(2 / 4)
    assert found.first_position_share.n == 6  # decided: A B, A A, A, A
    assert found.first_position_share.value == pytest.approx(5 / 6)


def test_kappa_between_orders_by_hand() -> None:
    # un-swapped: 4 agree on A, 2 on B, 1 A/B, 1 B/A: p_o = 6/8, p_e = (5/8)^2 + (3/8)^2 = 34/64
    cases = [case(A, A, B)] * 4 + [case(A, B, A)] * 2 + [case(A, A, A), case(A, B, B)]
    found = measures(cases).kappa_orders
    assert found.value == pytest.approx((6 / 8 - 34 / 64) / (1 - 34 / 64))


def test_nothing_but_missing_verdicts_is_wrong_and_otherwise_undefined() -> None:
    found = measures([case(A, None, None)])
    assert found.accuracy_net.value == 0
    for estimate in (found.order_consistency, found.first_position_share, found.kappa_orders):
        assert estimate.value is None and estimate.undefined and estimate.missing


def test_a_judge_that_only_ties_has_no_position_and_no_kappa() -> None:
    found = measures([case(A, TIE, TIE), case(B, TIE, TIE)])
    assert found.accuracy_net.value == 0 and found.order_consistency.value == 1
    assert found.first_position_share.undefined == "no verdict names a side"
    assert "0/0" in found.kappa_orders.undefined


def test_groups_and_overall_per_judge() -> None:
    rows = [("x", "1", "math"), ("x", "2", "code"), ("y", "1", "math")]
    found = audit(AuditCase(judge, pair, group, A, A, B) for judge, pair, group in rows)
    assert [(judge, group, each.n) for judge, group, each in found] == [
        ("x", "code", 1),
        ("x", "math", 1),
        ("x", None, 2),
        ("y", "math", 1),
        ("y", None, 1),
    ]


def values(found: object) -> dict[str, object]:
    return {name: each.value for name, each in vars(found).items() if isinstance(each, Estimate)}


@given(CASES, st.randoms(use_true_random=False))
def test_the_order_of_cases_changes_no_value(rows, random) -> None:
    cases = [case(*row) for row in rows]
    assert values(measures(random.sample(cases, len(cases)))) == pytest.approx(values(measures(cases)))


@given(CASES)
def test_calling_a_b_and_b_a_changes_nothing_but_the_side(rows) -> None:
    """The same judgements about the same pairs, with the names of the two responses exchanged."""

    # "given" was shown the other way round under the new names; what a judge said does not change
    renamed = [case(-label, swapped, given) for label, given, swapped in rows]
    before, after = values(measures([case(*row) for row in rows])), values(measures(renamed))
    before["accuracy_given"], before["accuracy_swapped"] = before["accuracy_swapped"], before["accuracy_given"]
    assert after == pytest.approx(before)


@given(CASES)
def test_right_in_both_orders_is_right_in_each_and_in_the_net(rows) -> None:
    found = measures([case(*row) for row in rows])
    both = found.accuracy_both.value
    assert both <= min(found.accuracy_given.value, found.accuracy_swapped.value, found.accuracy_net.value)
    assert found.accuracy_random.value == pytest.approx((found.accuracy_given.value + found.accuracy_swapped.value) / 2)


@pytest.mark.parametrize(
    ("chosen", "rejected", "expected"),
    [
        (100, 150, "longer is worse"),
        (100, 149, "similar length"),
        (150, 100, "longer is better"),
        (0, 5, "longer is worse"),
        (5, 0, "longer is better"),
        (0, 0, "similar length"),
    ],
)
def test_slices_by_length(chosen, rejected, expected) -> None:
    assert length_slice(chosen, rejected) == expected


def test_formatting_is_counted_and_compared() -> None:
    marked = "# Title\n- one\n2. two\n**bold** and **more**\nplain - dash"
    assert formatting(marked) == 5
    assert formatting("3.5 is a number. So it is.") == 0
    assert format_slice("plain", marked) == "rejected is formatted more"
    assert format_slice(marked, "plain") == "chosen is formatted more"
    assert format_slice("plain", "simple") == "formatted alike"


def test_accuracy_by_slice_counts_missing_verdicts_as_wrong() -> None:
    found = by_slice(["x", "x", "y"], [A, B, A], [A, None, A])
    assert {name: (e.value, e.n, e.missing) for name, e in found.items()} == {"x": (0.5, 2, 1), "y": (1.0, 1, 0)}


@pytest.mark.parametrize(
    ("samples", "expected"),
    [
        ([A, A, B], A),
        ([A, B], TIE),
        ([TIE, A], TIE),
        ([None, B], B),
        ([None], None),
        ([], None),
        ([A, A, B, B, TIE], TIE),
    ],
)
def test_votes(samples, expected) -> None:
    assert vote(samples) == expected


@given(st.lists(SIDES, min_size=1, max_size=6), st.sampled_from([A, TIE, B]), st.data())
def test_voting_at_k_is_the_mean_over_all_draws(samples, label, data) -> None:
    k = data.draw(st.integers(1, len(samples)))
    draws = [vote(drawn) == label for drawn in combinations(samples, k)]
    [found] = voting_curve([label], [samples], [k]).values()
    assert found.value == pytest.approx(sum(draws) / len(draws))


def test_cases_with_too_few_samples_leave_the_curve_and_are_counted() -> None:
    curve = voting_curve([A, A], [[A, A, B], [A]], [1, 3, 5])
    assert (curve[1].n, curve[3].n, curve[3].missing) == (2, 1, 1)
    assert curve[1].value == pytest.approx((2 / 3 + 1) / 2) and curve[3].value == 1
    assert curve[5].undefined == "no case has 5 samples" and curve[5].missing == 2
    with pytest.raises(ValueError, match="k: 0"):
        voting_curve([A], [[A]], [0])


def test_the_human_range_by_hand() -> None:
    humans = {"1": {"x": A, "y": A, "z": B}, "2": {"x": B, "y": B}, "3": {"x": A}, "4": {"x": A, "y": B}}
    found = human_range({"1": A, "2": B, "3": A, "4": None}, humans)
    assert (found.judge.n, found.judge.missing) == (2, 1)  # item 3 has one person, item 4 no judge
    assert found.judge.value == pytest.approx((2 / 3 + 1) / 2)
    assert found.humans.value == pytest.approx((1 / 3 + 1) / 2)
    assert found.difference.value == pytest.approx(1 / 6)
    assert found.raters["x"].value == pytest.approx((1 / 2 + 1) / 2) and found.raters["z"].value == 0
    assert found.place == "within"


def test_a_judge_that_contradicts_unanimous_people_is_below_the_human_range() -> None:
    humans = {str(i): {"x": i % 2, "y": i % 2} for i in range(40)}
    assert human_range({str(i): 1 - i % 2 for i in range(40)}, humans).place == "below"
    assert human_range({}, humans).place == "undefined"
