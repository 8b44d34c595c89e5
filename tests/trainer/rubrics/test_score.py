"""Scores worked by hand, and rules that hold for every rubric."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from trainer.contracts import Criterion, Rubric, Verdict, VerifierSpec
from trainer.rubrics import breakdown, likert_score, report_score, score_rubric, training_score


def rubric(*points: float, **importance: str) -> Rubric:
    return Rubric(
        criteria=tuple(
            Criterion(id=f"c{i}", text=f"criterion {i}", points=p, importance=importance.get(f"c{i}", "important"))
            for i, p in enumerate(points)
        )
    )


def given_verdicts(*met: bool | None) -> tuple[Verdict, ...]:
    return tuple(Verdict(criterion_id=f"c{i}", met=value) for i, value in enumerate(met))


@pytest.mark.parametrize(
    ("points", "met", "score", "clipped"),
    [
        ((5, 3, -2), (True, False, True), 3 / 8, 3 / 8),
        ((5, 3, -2), (True, True, False), 1.0, 1.0),
        ((5, 3, -2), (False, False, True), -0.25, 0.0),
        ((4,), (True,), 1.0, 1.0),
        ((1, -10), (True, True), -9.0, 0.0),
    ],
)
def test_score_is_met_points_over_positive_points(points, met, score, clipped):
    scored = training_score(rubric(*points), given_verdicts(*met))
    assert (scored.score, scored.clipped, scored.missing) == (pytest.approx(score), pytest.approx(clipped), 0)


def test_a_missing_verdict_leaves_no_training_score():
    scored = training_score(rubric(5, 3), given_verdicts(True, None))
    assert (scored.score, scored.clipped, scored.missing) == (None, None, 1)


def test_a_verdict_that_was_never_given_is_missing_too():
    assert training_score(rubric(5, 3), given_verdicts(True)).missing == 1


def test_report_leaves_a_missing_criterion_out_of_both_sums():
    scored = report_score(rubric(5, 3, -2), given_verdicts(True, None, True))
    assert (scored.score, scored.missing, scored.partial) == (pytest.approx(3 / 5), 1, True)


def test_report_has_no_score_without_an_essential_criterion():
    scored = report_score(rubric(5, 3, c1="essential"), given_verdicts(True, None))
    assert (scored.score, scored.partial) == (None, False)


def test_report_has_no_score_when_every_positive_criterion_is_missing():
    assert report_score(rubric(5, -2), given_verdicts(None, False)).score is None


def test_report_of_complete_verdicts_equals_the_training_score():
    rules, verdicts = rubric(5, 3, -2), given_verdicts(True, False, True)
    report = report_score(rules, verdicts)
    assert (report.score, report.partial) == (training_score(rules, verdicts).score, False)


def test_a_verdict_on_another_rubric_is_refused():
    with pytest.raises(ValueError, match="'c1', which this rubric does not have"):
        training_score(rubric(1), given_verdicts(True, True))


def test_verifiers_decide_and_criteria_without_one_are_missing():
    rules = Rubric(
        criteria=(
            Criterion(
                id="short", text="Is short.", points=2, verifier=VerifierSpec(name="word_count", args={"max": 3})
            ),
            Criterion(id="kind", text="Is kind.", points=1),
        )
    )
    scored = score_rubric(rules, "Two words")
    assert scored.score is None
    assert [(v.criterion_id, v.met, v.source) for v in scored.verdicts] == [
        ("short", True, "verifier"),
        ("kind", None, "judge"),
    ]
    shown = breakdown(rules, scored.verdicts)
    assert [(c.text, c.points, c.verdict.met) for c in shown] == [("Is short.", 2, True), ("Is kind.", 1, None)]


def test_likert_is_the_weighted_mean_of_rescaled_ratings():
    assert likert_score([2, 1], [10, 1]) == pytest.approx(2 / 3)
    assert likert_score([1], [5.5]) == pytest.approx(0.5)


@pytest.mark.parametrize(
    ("weights", "ratings", "part"),
    [([1, -1], [5, 5], "sum to 0"), ([1], [0], "not between"), ([1], [5, 5], "1 weights but 2"), ([], [], "sum to 0")],
)
def test_likert_refuses_what_has_no_score(weights, ratings, part):
    with pytest.raises(ValueError, match=part):
        likert_score(weights, ratings)


cases = st.lists(st.tuples(st.integers(-10, 10).filter(bool), st.booleans()), min_size=1, max_size=8).filter(
    lambda case: any(points > 0 for points, _ in case)
)


@given(cases)
def test_score_never_exceeds_one_and_clipped_lies_in_the_unit_interval(case):
    scored = training_score(rubric(*(p for p, _ in case)), given_verdicts(*(m for _, m in case)))
    assert scored.score <= 1 + 1e-12
    assert 0 <= scored.clipped <= 1


@given(cases)
def test_meeting_a_good_criterion_raises_and_a_pitfall_lowers_the_score(case):
    rules = rubric(*(p for p, _ in case))
    for i, (points, _) in enumerate(case):
        low, high = (
            training_score(rules, given_verdicts(*(value if j == i else m for j, (_, m) in enumerate(case)))).score
            for value in (points < 0, points > 0)
        )
        assert low < high


@given(cases, st.integers(2, 7))
def test_scaling_all_points_changes_nothing(case, factor):
    verdicts = given_verdicts(*(m for _, m in case))
    once = training_score(rubric(*(p for p, _ in case)), verdicts).score
    assert training_score(rubric(*(factor * p for p, _ in case)), verdicts).score == pytest.approx(once)
