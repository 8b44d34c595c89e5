"""A study of two rubrics by hand: the accuracy of each arm, the paired difference, and missing answers."""

import pytest

from trainer.contracts import Example, Message, Preference, Response
from webapp.evaluation.recipes.base import NothingToScore, StudyJudgement

from ..fake import FakeContext, block, cases_with_tags, row

TITLE = "People with either rubric"


def pair(key: str, label: int = -1) -> Example:
    return Example(
        key=key,
        prompt=(Message(role="user", content="?"),),
        domain="math" if key < "p2" else "code",
        responses=(Response(id="x", text="one"), Response(id="y", text="two")),
        preferences=(Preference(a="x", b="y", strength=label),),
    )


PAIRS = [pair(f"p{i}") for i in range(5)]


def judgement_of(example: str, arm: str, rater: str, side: int | None, a="x", b="y", seconds=2.0) -> StudyJudgement:
    return StudyJudgement(example, a, b, arm, rater, side, seconds, (f"{arm} item",))


# the label is A (-1) everywhere
ANSWERS = [
    judgement_of("p0", "human", "ann", -1),
    judgement_of("p0", "human", "bob", -1, seconds=4.0),
    judgement_of("p0", "own", "cem", 1),
    judgement_of("p1", "human", "ann", -1),
    judgement_of("p1", "own", "bob", 0),
    judgement_of("p2", "human", "cem", 1),
    judgement_of("p2", "own", "ann", 1, a="y", b="x"),  # the task shows the pair the other way round
    judgement_of("p3", "own", "ann", None),
    judgement_of("gone", "own", "ann", 1),
]


def run(answers=ANSWERS):
    return FakeContext("study", {"project": 1}, PAIRS, judgements=answers).run()


def test_both_arms_and_the_difference_are_those_worked_by_hand():
    report, cases = run()
    human, own = row(report, TITLE, "Human rubric"), row(report, TITLE, "Model's rubric")
    assert (human["Accuracy"]["value"], human["Accuracy"]["n"]) == (0.75, 4)
    assert (own["Accuracy"]["value"], own["Accuracy"]["n"], own["Accuracy"]["missing"]) == (0.25, 4, 1)
    assert (own["Ties"]["value"], own["No verdict"]["value"]) == (1, 1)
    # p0: 1 - 0, p1: 1 - 0, p2: 0 - 1; p3 was judged in one arm only
    assert report["headline"]["cell"]["value"] == pytest.approx(1 / 3)
    assert (report["headline"]["cell"]["n"], report["headline"]["cell"]["missing"]) == (3, 1)
    assert report["headline"]["cell"]["low"] < 1 / 3 < report["headline"]["cell"]["high"]
    assert len(cases_with_tags(cases, human["Accuracy"]["tags"])) == 1
    assert cases[0].values["rubric"] == ["human item"]


def test_people_who_agree_and_the_time_they_took_stand_beside():
    report, _ = run()
    human = row(report, TITLE, "Human rubric")
    assert (human["Two people agree"]["value"], human["Two people agree"]["n"]) == (1.0, 1)
    assert human["Two people agree"]["missing"] == 2 and human["Time"]["value"] == 2.5
    assert row(report, TITLE, "Model's rubric")["Two people agree"]["undefined"]


def test_what_is_not_there_is_counted():
    report, cases = run()
    coverage = {words: cell["value"] for words, cell in report["coverage"]}
    assert coverage == {
        "Answers": 8,
        "People": 3,
        "Pairs in both arms": 3,
        "In one arm only": 1,
        "Not judged yet": 1,
        "Could not be assessed": 1,
        "About other pairs": 1,
    }
    assert {case.subject["example"] for case in cases_with_tags(cases, ["one arm"])} == {"p3"}


def test_by_domain_and_by_person():
    report, _ = run()
    assert row(report, "Accuracy by domain", "math")["Difference"]["value"] == 1.0
    assert row(report, "Each person in either arm", "bob")["Human rubric"]["value"] == 1.0
    assert row(report, "Each person in either arm", "cem")["Model's rubric"]["n"] == 1
    assert block(report, TITLE)["rows"][-1][2]["value"] == pytest.approx(1 / 3)


def test_one_arm_alone_has_no_difference_and_says_so():
    report, _ = run([each for each in ANSWERS if each.arm == "human"])
    cell = report["headline"]["cell"]
    assert cell["value"] is None and cell["undefined"] == "no case has a value from both" and cell["missing"] == 3


def test_without_answers_there_is_nothing_to_score():
    with pytest.raises(NothingToScore):
        run([])
