"""Grades beside comparisons: weights and rank correlations by hand, changes that must not matter, and undefined cases."""

import math
from dataclasses import replace

import numpy as np
import pytest

from trainer.metrics.estimate import Estimate
from trainer.metrics.fused import Minutes, Preferred, fused, ridge_logistic

PROMPTS = [f"p{i}" for i in range(4)]
# the rubric pays three times as much for length as for being right; people prefer the right one
POINTS = {prompt: {"right": 1.0, "long": 3.0} for prompt in PROMPTS}
GRADES = {(prompt, "a"): {"right": 1.0, "long": 0.0} for prompt in PROMPTS}
GRADES |= {(prompt, "b"): {"right": 0.0, "long": 1.0} for prompt in PROMPTS}
COMPARISONS = [Preferred(prompt, "a", "b", 1) for prompt in PROMPTS for _ in range(2)]
MINUTES = {prompt: Minutes(grading=2.0, comparing=1.0) for prompt in PROMPTS}


def values(found):
    """All its numbers, independent of the order of the weights."""
    ranks = [each.value for rank in (found.rubric, found.comparison, found.fused) for each in vars(rank).values()]
    gains = [found.more_grades.value, found.more_comparisons.value, found.difference.value]
    return ranks + gains + [each.weight.value for each in sorted(found.weights, key=lambda each: each.criterion)]


# ---- weights ----


def test_a_weight_solves_its_equation():
    # one case x = 1, y = 1: s(-w) = penalty * w, so a penalty of s(-1) gives 1
    penalty = 1 / (1 + math.e)
    assert ridge_logistic(np.array([[1.0]]), np.array([1.0]), np.array([penalty])) == pytest.approx([1.0])
    # two strengths of one comparison are u and -u with s(-2u) = penalty * u: 2 s(-1) gives a half
    found = ridge_logistic(np.array([[1.0, -1.0]]), np.array([1.0]), np.full(2, 2 * penalty))
    assert found == pytest.approx([0.5, -0.5])
    # 3 of 4 and hardly a penalty: the log odds log 3
    x, y = np.ones((4, 1)), np.array([1.0, 1.0, 1.0, 0.0])
    assert ridge_logistic(x, y, np.array([1e-9])) == pytest.approx([math.log(3)])
    assert ridge_logistic(x[:2], y[2:], np.array([1e-9]), np.array([3.0, 1.0])) == pytest.approx([math.log(3)])


def test_sides_may_be_swapped_and_separated_data_stay_finite():
    x, y = np.array([[1.0, 0.5], [-0.2, 1.0], [0.3, -1.0]]), np.array([1.0, 0.5, 0.0])
    penalty = np.array([0.5, 2.0])
    assert ridge_logistic(-x, 1 - y, penalty) == pytest.approx(ridge_logistic(x, y, penalty))
    (found,) = ridge_logistic(np.full((50, 1), 1000.0), np.ones(50), np.array([1e-3]))
    assert 0 < found < 1


@pytest.mark.parametrize("y, penalty", [([1.5], [1.0]), ([1.0], [0.0])])
def test_what_has_no_maximum_is_refused(y, penalty):
    with pytest.raises(ValueError, match="must"):
        ridge_logistic(np.ones((1, 1)), np.array(y), np.array(penalty))


# ---- rank correlations, and what to collect next ----


def test_each_score_and_its_time_are_those_worked_by_hand():
    found = fused(COMPARISONS, GRADES, POINTS, MINUTES)
    # the rubric puts every b first; one person's comparison predicts the other's; fitted weights put a first
    assert [each.tau.value for each in (found.rubric, found.comparison, found.fused)] == [-1, 1, 1]
    # one of two comparisons predicts the other: half a minute
    assert [each.minutes.value for each in (found.rubric, found.comparison, found.fused)] == [2, 0.5, 2.5]
    assert [each.per_minute.value for each in (found.rubric, found.comparison, found.fused)] == [-0.5, 2, 0.4]
    # grades add (1 - 1) / 2 to comparisons; comparisons add (1 - -1) / 0.5 to grades
    assert [found.more_grades.value, found.more_comparisons.value, found.difference.value] == [0, 4, -4]
    assert found.collect == "comparisons"
    assert found.agrees_C[0] == (-1, 1, 1)
    right, long = found.weights
    assert (right.criterion, right.points, long.points) == ("right", 1, 3)
    # 8 cases x = (1, -1), y = 1, penalty 1: 8 s(-2w) = w
    assert right.weight.value == pytest.approx(-long.weight.value)
    assert 8 / (1 + math.exp(2 * right.weight.value)) == pytest.approx(right.weight.value)


def test_what_adds_nothing_is_not_to_be_collected_next():
    found = fused(COMPARISONS, GRADES, POINTS, MINUTES)
    assert replace(found, more_comparisons=Estimate(0.0, 8)).collect == ""
    grades = replace(found, difference=Estimate(1.0, 8, 0.5, 1.5))
    assert (replace(grades, more_grades=Estimate(-0.1, 8)).collect, grades.collect) == ("", "")
    assert replace(grades, more_grades=Estimate(0.1, 8)).collect == "grades"


def test_a_rubric_that_ranks_as_people_do_keeps_its_points():
    points = {prompt: {"right": 3.0, "long": 1.0} for prompt in PROMPTS}
    found = fused(COMPARISONS, GRADES, points, MINUTES, ridge=1e6)
    assert (found.rubric.tau.value, found.more_comparisons.value) == (1, 0)
    right, long = (each.weight.value for each in found.weights)
    assert right == pytest.approx(3 * long, rel=1e-3) and long > 0


def test_neither_order_nor_sides_nor_the_unit_of_points_matter():
    rng = np.random.default_rng(5)
    points, grades, comparisons = {}, {}, []
    for prompt in (f"q{i:02}" for i in range(24)):
        points[prompt] = {"x": 2.0, "y": 1.0, "z": -1.0}
        for name in "abc":
            grades[prompt, name] = {text: float(rng.random() < 0.5) for text in points[prompt]}
        for one, two in ("ab", "bc", "ac"):
            comparisons += [Preferred(prompt, one, two, int(rng.integers(-1, 2))) for _ in range(2)]
    minutes = {prompt: Minutes(float(rng.random()) + 0.1, float(rng.random()) + 0.1) for prompt in points}
    before = fused(comparisons, grades, points, minutes)
    swapped = [Preferred(c.prompt, c.second, c.first, -c.outcome) for c in reversed(comparisons)]
    tenfold = {prompt: {text: 10 * value for text, value in each.items()} for prompt, each in points.items()}
    assert values(fused(swapped, grades, tenfold, minutes)) == pytest.approx(values(before))
    assert before.difference.low < before.difference.value < before.difference.high
    longer = {prompt: Minutes(2 * each.grading, 2 * each.comparing) for prompt, each in minutes.items()}
    assert fused(comparisons, grades, points, longer).fused.per_minute.value == pytest.approx(
        before.fused.per_minute.value / 2
    )


def test_a_planted_weight_is_found_and_comes_with_an_interval_that_holds_it():
    """A constructed study: people weigh by log odds 2 and -1, and the rubric gives both one point."""
    rng, comparisons, grades, points = np.random.default_rng(11), [], {}, {}
    for prompt in (f"q{i:03}" for i in range(200)):
        points[prompt] = {"good": 1.0, "bad": 1.0}
        for name in "ab":
            grades[prompt, name] = {text: float(rng.random() < 0.5) for text in points[prompt]}
        one, two = grades[prompt, "a"], grades[prompt, "b"]
        odds = 2 * (one["good"] - two["good"]) - (one["bad"] - two["bad"])
        comparisons += [
            Preferred(prompt, "a", "b", 1 if rng.random() < 1 / (1 + math.exp(-odds)) else -1) for _ in range(3)
        ]
    found = fused(comparisons, grades, points, {prompt: Minutes(1.0, 1.0) for prompt in points})
    good, bad = found.weights
    assert (good.criterion, bad.criterion) == ("good", "bad")
    assert good.weight.low < 2 < good.weight.high and bad.weight.low < -1 < bad.weight.high
    assert found.fused.tau.value > found.comparison.tau.value > found.rubric.tau.value


# ---- what cannot be had ----


def test_without_comparisons_there_is_nothing_and_it_says_so():
    found = fused([], {}, {}, {})
    assert found.rubric.tau.value is None and "no comparison with a winner" in found.rubric.tau.undefined
    assert found.difference.value is None and found.collect == "" and found.weights == ()


def test_a_tie_says_nothing_of_ranks_but_is_counted():
    tied = [replace(each, outcome=0) for each in COMPARISONS[:2]] + COMPARISONS[2:]
    found = fused(tied, GRADES, POINTS, MINUTES)
    assert (found.rubric.tau.n, found.rubric.tau.missing, found.agrees_C[0]) == (6, 2, (None, None, None))


def test_a_pair_that_one_person_compared_has_no_comparison_to_tell_it():
    found = fused(COMPARISONS[::2], GRADES, POINTS, MINUTES)
    assert found.comparison.tau.value is None and found.more_grades.value is None
    assert (found.rubric.tau.value, found.fused.tau.value) == (-1, 1), "grades do not need another comparison"
    # a chain over a third response joins them
    chain = [Preferred("p0", "a", "c", 1), Preferred("p0", "c", "b", 1), Preferred("p0", "a", "b", 1)]
    assert fused(chain, {}, {}, {}).agrees_C[2][1] == 1


def test_a_response_without_all_its_grades_has_no_rubric_score():
    grades = GRADES | {("p0", "a"): {"right": 1.0}}
    found = fused(COMPARISONS, grades, POINTS, MINUTES)
    assert found.agrees_C[0] == (None, 1, None)
    assert (found.rubric.tau.n, found.rubric.tau.missing) == (6, 2)


def test_a_rubric_that_gives_no_points_scores_nothing():
    only_faults = {prompt: {"right": -1.0, "long": -3.0} for prompt in PROMPTS}
    assert fused(COMPARISONS, GRADES, only_faults, MINUTES).rubric.tau.value is None


def test_time_that_was_not_measured_leaves_out_its_prompt():
    some = MINUTES | {"p0": Minutes(None, 1.0), "p1": Minutes(0.0, 1.0)}
    found = fused(COMPARISONS, GRADES, POINTS, some)
    assert (found.rubric.per_minute.n, found.rubric.per_minute.missing) == (4, 4)
    assert found.rubric.tau.n == 8 and found.comparison.per_minute.n == 8
    never = fused(COMPARISONS, GRADES, POINTS, {})
    assert never.rubric.tau.value == -1 and never.rubric.per_minute.undefined == "nobody's time was measured"


def test_one_prompt_has_no_spread_and_nobody_elses_weights():
    found = fused(COMPARISONS[:2], GRADES, POINTS, MINUTES)
    assert found.rubric.tau.value == -1 and found.rubric.tau.interval == "one group has no spread"
    assert found.fused.tau.value is None and found.weights == ()


def test_a_criterion_in_which_no_two_responses_differ_has_no_weight():
    points = {prompt: {**each, "polite": 1.0} for prompt, each in POINTS.items()}
    grades = {key: {**each, "polite": 1.0} for key, each in GRADES.items()}
    polite = next(each for each in fused(COMPARISONS, grades, points, MINUTES).weights if each.criterion == "polite")
    assert polite.weight.undefined == "no two compared responses differ in it"


def test_a_criterion_of_one_prompt_keeps_its_points():
    points = {prompt: {f"right {prompt}": 1.0, f"long {prompt}": 3.0} for prompt in PROMPTS}
    grades = {(p, r): {f"{text} {p}": value for text, value in each.items()} for (p, r), each in GRADES.items()}
    found = fused(COMPARISONS, grades, points, MINUTES)
    assert found.weights == () and found.rubric.tau.value == -1
