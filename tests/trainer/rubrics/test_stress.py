"""The results of a rubric on responses that its author has not seen."""

import pytest

from trainer.contracts import Criterion, Rubric, Verdict, VerifierSpec
from trainer.rubrics.stress import stress_test
from trainer.verifiers import VerifierError


def criterion(name: str, points: float, spec: VerifierSpec | None = None, importance: str = "important") -> Criterion:
    return Criterion(id=name, text=f"Check {name}.", points=points, verifier=spec, importance=importance)


SHORT = VerifierSpec(name="word_count", args={"max": 3})
TEA = VerifierSpec(name="must_contain", args={"texts": ["tea"]})
SAYS_NO = VerifierSpec(name="must_contain", args={"texts": ["no"], "whole_word": True})
TEXTS = ("tea, please", "a cup of tea would be lovely")


def test_verifiers_decide_and_scores_follow_by_hand():
    rubric = Rubric(criteria=(criterion("short", 3, SHORT), criterion("tea", 2, TEA), criterion("no", -4, SAYS_NO)))
    found = stress_test(rubric, TEXTS)
    assert [[verdict.met for verdict in row] for row in found.verdicts_RK] == [
        [True, True, False],
        [False, True, False],
    ]
    assert [score.score for score in found.scores_R] == pytest.approx([5 / 5, 2 / 5])
    assert found.power_K == ("discriminates", "all_meet", "none_meets")


def test_a_criterion_without_verifier_is_missing_and_not_false():
    rubric = Rubric(criteria=(criterion("short", 3, SHORT), criterion("warm", 5)))
    found = stress_test(rubric, TEXTS)
    assert [row[1].met for row in found.verdicts_RK] == [None, None]
    assert found.power_K == ("discriminates", "unknown")
    assert [(score.score, score.partial, score.missing) for score in found.scores_R] == [(1.0, True, 1), (0.0, True, 1)]


def test_a_missing_essential_criterion_leaves_no_score():
    rubric = Rubric(criteria=(criterion("short", 3, SHORT), criterion("warm", 5, importance="essential")))
    assert [score.score for score in stress_test(rubric, TEXTS).scores_R] == [None, None]


def test_one_response_alone_says_nothing_about_telling_apart():
    rubric = Rubric(criteria=(criterion("short", 3, SHORT),))
    assert stress_test(rubric, TEXTS[:1]).power_K == ("unknown",)
    assert stress_test(rubric, []).power_K == ("unknown",)


def test_a_verifier_that_cannot_run_is_an_error_and_no_verdict():
    rubric = Rubric(criteria=(criterion("odd", 3, VerifierSpec(name="word_count", args={})),))
    with pytest.raises(VerifierError):
        stress_test(rubric, TEXTS)


def test_a_judge_decides_what_no_verifier_does_and_nothing_else():
    rubric = Rubric(criteria=(criterion("short", 3, SHORT), criterion("warm", 5), criterion("kind", 2)))
    says = [
        {"warm": Verdict(criterion_id="warm", met=True), "short": Verdict(criterion_id="short", met=False)},
        {"warm": Verdict(criterion_id="warm", met=False)},
    ]
    found = stress_test(rubric, TEXTS, judged_R=says)
    assert [[verdict.met for verdict in row] for row in found.verdicts_RK] == [[True, True, None], [False, False, None]]
    assert found.power_K == ("discriminates", "discriminates", "unknown")
    assert [(score.score, score.partial) for score in found.scores_R] == [(1.0, True), (0.0, True)]
