"""Known verdicts for the threshold of the shipped judge, and the verdicts that are kept apart from them."""

from benchmarks.demo_verdicts import verdicts
from benchmarks.judged_rubrics import chosen_on, demo, truth_of, unseen
from trainer.logit_judge.calibration import halves


def test_each_criterion_of_an_answer_is_a_line_with_what_its_verifier_says():
    row = next(each for each in demo() if each.key == "demo-001")
    lines = list(verdicts(row, "Sunlight is scattered by the air, blue most of all, before you see it."))
    assert [line["criterion"] for line in lines] == [criterion.text for criterion in truth_of(row).criteria]
    assert [line["met"] for line in lines] == [True, True, True, True]
    assert {line["item"] for line in lines} == {"demo-001"} and lines[0]["conversation"][0]["role"] == "user"


def test_prompts_that_choose_the_threshold_are_those_of_the_calibration_and_are_not_measured_on():
    rows = demo()
    chosen = chosen_on(rows)
    lines = [line for row in rows if row.split == "train" for line in verdicts(row, "Yes.")]
    items = [line["item"] for line in lines]
    assert chosen == {item for item, taken in zip(items, halves(items, 0), strict=True) if taken}
    left = unseen(rows)
    assert len(left) == len(rows) - len(chosen) and not {row.key for row in left} & chosen
    assert any(row.split == "heldout" for row in left) and any(row.split == "train" for row in left)
