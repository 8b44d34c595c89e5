"""Audits of rubrics: criteria that do not vary, repeat each other, contradict each other, or change the score."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from trainer.metrics.rubric_audit import as_json, association, criterion_powers, related, sensitivity

T, F = True, False
MET = st.integers(1, 4).flatmap(lambda k: st.lists(st.lists(st.booleans(), min_size=k, max_size=k), max_size=8))


def test_what_always_or_never_holds() -> None:
    found = criterion_powers([[T, F, T, None], [T, F, F, None], [T, F, None, T]])
    assert [each.power for each in found] == ["all_meet", "none_meets", "discriminates", "unknown"]
    assert [each.share.value for each in found] == [1, 0, 0.5, 1]
    assert [each.share.missing for each in found] == [0, 0, 1, 2]
    assert criterion_powers([[None], [None]])[0].share.undefined == "no verdict"
    assert criterion_powers([]) == []


def test_rows_of_different_lengths_are_refused() -> None:
    with pytest.raises(ValueError, match=r"\[1, 2\] criteria"):
        criterion_powers([[T], [T, F]])


def test_association_by_hand() -> None:
    # n11 3, n10 1, n01 2, n00 4: (12 - 2) / sqrt(4 * 6 * 5 * 5)
    found = association([T] * 4 + [F] * 6 + [None], [T, T, T, F, T, T, F, F, F, F, T])
    assert found.value == pytest.approx(10 / 600**0.5)
    assert (found.n, found.missing) == (10, 1)
    assert association([T, T], [T, F]).undefined == "one of the two criteria does not vary"
    assert association([None], [T]).undefined == "no response has both verdicts"


def test_redundant_and_conflicting_pairs() -> None:
    rows = [[T, T, F, T], [F, F, T, F], [T, T, F, T], [F, F, T, F], [T, T, F, T]]
    found = {(p.first, p.second): p.kind for p in related(rows, [1, 1, 1, -1])}
    assert found[0, 1] == "redundant"  # together, both earn
    assert found[0, 2] == "conflicting"  # against each other, both earn
    assert found[0, 3] == "conflicting"  # together, one earns and one costs
    assert found[2, 3] == "redundant"  # against each other, one earns and one costs
    assert related(rows[:4], [1, 1, 1, -1]) == []  # too few responses to decide


def test_sensitivity_by_hand() -> None:
    # scores (2a + b) / 3: 1, 2/3, 1/3; without a: b = 1, 0, 1
    found = sensitivity([[T, T], [T, F], [F, T]], [2, 1])[0]
    assert found.weight == pytest.approx(2 / 3)
    assert found.shift.value == pytest.approx((0 - 2 / 3 + 2 / 3) / 3)
    assert found.swing.value == pytest.approx((0 + 2 / 3 + 2 / 3) / 3)
    assert found.flips.value == pytest.approx(2 / 3)  # 1 > 2/3 stays, 1 > 1/3 becomes a tie, 2/3 > 1/3 is reversed


def test_a_pitfall_is_left_out_of_the_denominator() -> None:
    found = sensitivity([[T, T], [T, F]], [4, -2])
    assert found[1].weight == -0.5
    assert found[1].shift.value == pytest.approx(((1 - 0.5) + 0) / 2)
    assert "only criterion with positive points" in found[0].shift.undefined


def test_responses_with_a_missing_verdict_are_counted_and_leave() -> None:
    found = sensitivity([[T, None], [T, F]], [1, 1])
    assert found[0].swing.n == 1 and found[0].swing.missing == 1
    assert sensitivity([[None, None]], [1, 1])[0].shift.undefined == "no response has every verdict"
    assert sensitivity([], [1, 1])[0].flips.undefined == "no two responses differ in score"


def test_a_rubric_without_positive_points_has_no_score() -> None:
    with pytest.raises(ValueError, match="no criterion has positive points"):
        sensitivity([[T]], [-1])
    with pytest.raises(ValueError, match="1 points for 2"):
        sensitivity([[T, F]], [1])


@given(MET, st.randoms(use_true_random=False))
def test_the_order_of_responses_changes_no_value(rows, random) -> None:
    if not rows:
        return
    points = [1.0] * len(rows[0])
    shuffled = random.sample(rows, len(rows))
    before, after = sensitivity(rows, points), sensitivity(shuffled, points)
    for one, other in zip(before, after, strict=True):
        for name in ("shift", "swing", "flips"):
            assert getattr(other, name).value == pytest.approx(getattr(one, name).value)
    assert [h.share.value for h in criterion_powers(shuffled)] == [h.share.value for h in criterion_powers(rows)]


def test_the_json_form_holds_all_three_tables() -> None:
    rows, points = [[T, F], [F, T]] * 3, [1.0, 1.0]
    found = as_json(criterion_powers(rows), related(rows, points), sensitivity(rows, points))
    assert found["criteria"][0]["power"] == "discriminates"
    assert found["related"][0]["kind"] == "conflicting" and found["related"][0]["phi"]["value"] == -1


def test_of_many_responses_a_fixed_sample_is_paired() -> None:
    rows = [[i % 2 == 0, i % 3 == 0] for i in range(700)]
    found = sensitivity(rows, [2.0, 1.0])
    assert found[0].swing.n == 700 and found[0].flips.n < 300 * 299 / 2
    assert found[0].flips == sensitivity(rows, [2.0, 1.0])[0].flips
