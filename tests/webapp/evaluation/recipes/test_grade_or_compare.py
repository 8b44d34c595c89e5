"""Two projects by hand: three scores compared with each other, what to collect next, and counts of everything that is left out."""

import pytest

from trainer.contracts import Criterion, Example, Message, Response, Rubric
from webapp.evaluation.recipes.base import NothingToScore, ProjectAnswer

from .fake import FakeContext, block, cases_with_tags, row

GRADING, COMPARING = 1, 2
SCORES, NEXT = "Grades, comparisons and both", "Data to collect next"
RUBRIC = Rubric(criteria=(Criterion(id="c1", text="Right", points=1), Criterion(id="c2", text="Long", points=3)))
TEXTS = {"x": "one", "y": "two"}
MET = {"x": ("met", "not_met"), "y": ("not_met", "met")}  # x is right, y is long


def example(key: str) -> Example:
    responses = tuple(Response(id=name, text=text) for name, text in TEXTS.items())
    return Example(key=key, prompt=(Message(role="user", content="?"),), rubric=RUBRIC, responses=responses)


EXAMPLES = [example(f"p{i}") for i in range(4)]


def compared(key: str, strength: int | None = -2, rater="ann", seconds=30.0, **sides) -> ProjectAnswer:
    subject = {"a": "x", "b": "y", **sides}
    return ProjectAnswer(key, subject, {"verdict": "compared", "strength": strength}, rater, seconds, TEXTS)


def graded(key: str, side: str, seconds=60.0, texts=TEXTS, met=None) -> ProjectAnswer:
    grades = [{"criterion": f"c{n}", "verdict": verdict} for n, verdict in enumerate(met or MET[side], 1)]
    return ProjectAnswer(key, {"response": side}, {"grades": grades}, "cem", seconds, texts)


# two people prefer the right one; the rubric gives more points for length
COMPARISONS = [compared(each.key, rater=rater) for each in EXAMPLES for rater in ("ann", "bob")]
GRADES = [graded(each.key, side) for each in EXAMPLES for side in TEXTS]


def run(comparisons=COMPARISONS, grades=GRADES, **config):
    raw = {"grading": GRADING, "comparing": COMPARING, **config}
    said = {GRADING: list(grades), COMPARING: list(comparisons)}
    return FakeContext("grade_or_compare", raw, EXAMPLES, said=said).run()


def coverage(report, words: str):
    return next(cell["value"] for title, cell in report["coverage"] if title == words)


def test_scores_times_and_gains_are_those_worked_by_hand():
    report, cases = run()
    rubric, other, both = (row(report, SCORES, name) for name in ("Rubric", "Comparisons", "Both together"))
    assert [each["Rank correlation"]["value"] for each in (rubric, other, both)] == [-1, 1, 1]
    # two responses are graded in a minute each; of two comparisons of half a minute, one predicts the other
    assert [each["Minutes per prompt"]["value"] for each in (rubric, other, both)] == [2, 0.5, 2.5]
    assert [each["Per minute"]["value"] for each in (rubric, other, both)] == [-0.5, 2, 0.4]
    gains = [row(report, NEXT, name)["Gain per minute"]["value"] for name in ("More grades", "More comparisons")]
    assert gains == [0, 4] and report["headline"]["cell"]["value"] == -4
    assert report["notes"] == ["Collect comparisons next: a minute of comparing adds more than a minute of grading."]
    assert row(report, "Criterion weights", "Right")["Weight"]["value"] > 0
    assert row(report, "Criterion weights", "Long")["Weight"]["value"] < 0
    assert row(report, "Criterion weights", "Long")["Points"]["value"] == 3
    assert len(cases) == 8 and len(cases_with_tags(cases, ["rubric:the other way", "both:the same"])) == 8
    assert cases[0].values["people"] == "A" and cases[0].values["rubric"] == "the other way"


def test_a_pair_that_was_shown_the_other_way_round_says_the_same():
    turned = [compared(each.key, 2, rater, a="y", b="x") for each in EXAMPLES for rater in ("ann", "bob")]
    assert run(turned)[0]["headline"] == run()[0]["headline"]


def test_more_ridge_keeps_weights_nearer_to_the_points():
    near, far = (row(run(ridge=ridge)[0], "Criterion weights", "Long")["Weight"]["value"] for ridge in (100, 0.01))
    assert far < near < 0


def test_what_is_left_out_is_counted():
    odd = [compared("p0", 0), compared("p1", None), compared("gone"), *COMPARISONS[2:]]
    changed = [graded("p3", "y", texts={"x": "one", "y": "another text"})]
    split = graded("p2", "y", met=("cannot_assess", "met"))
    report, cases = run(odd, [each for each in GRADES if each.example not in ("p2", "p3")] + [*changed, split])
    assert coverage(report, "Ties, which rank nothing") == 1 and coverage(report, "Without a choice") == 1
    assert coverage(report, "About other texts") == 2
    assert coverage(report, "With a side without grades") == 4 == len(cases_with_tags(cases, ["not graded"]))
    tau = row(report, SCORES, "Rubric")["Rank correlation"]
    assert (tau["n"], tau["missing"]) == (2, 5)
    assert cases[0].values["rubric"] == "no score" and "tie" in cases[0].tags


def test_a_response_that_nobody_could_assess_has_no_rubric_score():
    unsure = [graded("p0", "x", met=("cannot_assess", "met")), *GRADES[1:]]
    tau = row(run(grades=unsure)[0], SCORES, "Rubric")["Rank correlation"]
    assert (tau["n"], tau["missing"]) == (6, 2)


def test_time_that_was_not_measured_is_missing_and_not_zero():
    report, _ = run(grades=[graded(each.key, side, seconds=0) for each in EXAMPLES for side in TEXTS])
    cell = row(report, SCORES, "Rubric")["Per minute"]
    assert cell["value"] is None and cell["undefined"] == "nobody's time was measured"
    assert report["headline"]["cell"]["value"] is None and report["notes"] == []


@pytest.mark.parametrize("comparisons, grades, lacks", [([], GRADES, "compared"), (COMPARISONS, [], "graded")])
def test_without_both_there_is_nothing_to_score(comparisons, grades, lacks):
    with pytest.raises(NothingToScore, match=lacks):
        run(comparisons, grades)
    assert block(run()[0], SCORES)
