"""Criterion judges compared with people's grades, by hand: the confusion matrix, the people themselves, and undecided criteria."""

import pytest

from trainer.contracts import Criterion, Example, Message, Response, Rubric, VerifierSpec
from webapp.evaluation.recipes import RECIPES
from webapp.evaluation.recipes.base import NothingToScore
from webapp.evaluation.recipes.grades import graded

from ..fake import FakeContext, Judge, block, cases_with_tags, row

CRITERIA = (
    Criterion(id="polite", text="Is polite", points=1, importance="essential", tags=("axis:tone",)),
    Criterion(id="right", text="Is right", points=5, tags=("axis:truth",)),
    Criterion(id="short", text="Has at most ten words", points=1, verifier=VerifierSpec(name="word_count")),
)
# response -> criterion -> the grades of three people: + met, - not met, . cannot tell
GRADES = {
    "p0": {"polite": "+++", "right": "++-"},
    "p1": {"polite": "---", "right": "--+"},
    "p2": {"polite": "++.", "right": "+-."},
}
WORDS = {"+": "met", "-": "not_met", ".": "cannot_assess"}


def example(key: str) -> Example:
    tasks = [
        {
            "subject": {"response": "x"},
            "rater": f"person-{n}",
            "grades": {criterion: WORDS[said[n]] for criterion, said in GRADES[key].items()} | {"short": "met"},
        }
        for n in range(3)
    ]
    return Example(
        key=key,
        prompt=(Message(role="user", content="?"),),
        domain="mail",
        rubric=Rubric(criteria=CRITERIA),
        responses=(Response(id="x", text="one"), Response(id="y", text="nobody graded this")),
        meta={"annotation": {"7": {"project": "Grades", "kind": "grading", "what": "answers", "tasks": tasks}}},
    )


EXAMPLES = [example(key) for key in GRADES]


def says(met: dict[str, dict[str, bool | None]]):
    def answer(given, subject):
        found = met[given.example][subject["criterion"]]
        return None if found is None else {"explanation": "so it is", "met": found}

    return answer


MILD = {key: {"polite": True, "right": True} for key in GRADES}
CLOSE = {
    "p0": {"polite": True, "right": None},
    "p1": {"polite": False, "right": False},
    "p2": {"polite": True, "right": True},
}


def run(*judges, **config):
    chosen = {"judges": [{"version": n + 1} for n in range(len(judges))], **config}
    known = {n + 1: Judge({"kind": "criterion"}, says(met)) for n, met in enumerate(judges)}
    context = FakeContext("criterion_audit", chosen, EXAMPLES, known)
    return *context.run(), context


def test_the_numbers_are_those_worked_by_hand():
    report, cases, context = run(CLOSE)
    # people: polite + - +, right + - and one even split; the judge: polite + - +, right missing, -
    found = row(report, "Judges against people", "judge 1")
    assert (found["Agreement"]["value"], found["Agreement"]["n"], found["Agreement"]["missing"]) == (0.8, 5, 1)
    assert found["Kappa"]["value"] == 1.0 and found["Kappa"]["n"] == 4
    assert found["Precision"]["value"] == 1.0
    assert found["Recall"]["value"] == pytest.approx(2 / 3)  # one of three questions was not answered
    assert found["Missing"]["value"] == 1 and len(cases_with_tags(cases, found["Missing"]["tags"])) == 1
    assert context.asked == {1: 6}  # without the ungraded response and the criterion with a verifier
    assert dict(report["coverage"])["Left to verifiers"]["value"] == 3
    assert dict(report["coverage"])["People evenly split"]["value"] == 1


def test_each_cell_of_the_confusion_leads_to_its_cases():
    report, cases, _ = run(MILD)
    found = row(report, "Where they part", "judge 1")
    assert [found[words]["value"] for words in ("Both met", "Only the judge", "Only people", "Neither")] == [3, 2, 0, 0]
    for words in ("Both met", "Only the judge", "Only people", "Neither", "No verdict"):
        assert len(cases_with_tags(cases, found[words]["tags"])) == found[words]["value"], words
    assert row(report, "Judges against people", "judge 1")["Lean"]["value"] == pytest.approx(2 / 5)


def test_per_criterion_the_worst_comes_first_with_kappa_n_and_cases():
    report, cases, _ = run(MILD)
    title = "By criterion: judge 1"
    assert [cells[0]["text"] for cells in block(report, title)["rows"]] == ["Is polite", "Is right"]
    right = row(report, title, "Is right")
    assert (right["Agreement"]["value"], right["Agreement"]["n"]) == (0.5, 2)
    assert right["Kappa"]["value"] == 0.0  # the agreement is that of chance: the judge calls everything met
    only = cases_with_tags(cases, right["Only the judge"]["tags"])
    assert [(case.subject["example"], case.values["why"]) for case in only] == [("p1", "so it is")]
    assert row(report, "Agreement by axis", "axis:truth")["judge 1"]["value"] == 0.5


def test_beside_people_on_the_same_criteria():
    report, cases, _ = run(CLOSE)
    found = row(report, "As good as people are?", "judge 1")
    # polite: 1, 1, 1 with two raters; right: p1 2/3, p2 1/2; there is no grade for p0 and right
    assert found["With a person"]["value"] == pytest.approx((1 + 1 + 1 + 2 / 3 + 1 / 2) / 5)
    assert found["Two people"]["value"] == pytest.approx((1 + 1 + 1 + 1 / 3 + 0) / 5)
    assert (found["With a person"]["n"], found["With a person"]["missing"]) == (5, 1)
    assert len(cases_with_tags(cases, found["With a person"]["tags"])) == 6
    third = row(report, "Each person with the others", "person-2")
    assert third["Beside judge 1"]["value"] == pytest.approx((1 + 1 + 0) / 3)  # p0 and p1 polite, p1 right


def test_two_judges_are_compared_on_the_same_criteria():
    report, cases, _ = run(MILD, CLOSE)
    found = row(report, "Against judge 2", "judge 1")
    for words in ("Only judge 2 right", "Only this one right"):
        assert len(cases_with_tags(cases, found[words]["tags"])) == found[words]["value"]
    counted = dict(report["coverage"])["Judges disagree"]
    # p1, both criteria; a missing verdict is not a disagreement
    assert len(cases_with_tags(cases, counted["tags"])) == counted["value"] == 4
    assert found["Difference"]["value"] == pytest.approx(3 / 5 - 4 / 5)
    assert (found["Only judge 2 right"]["value"], found["Only this one right"]["value"]) == (2, 1)
    assert found["p (McNemar)"]["value"] == 1.0  # 2 against 1


def test_the_entries_of_the_leaderboard_name_the_judges():
    report, _, _ = run(MILD, CLOSE)
    assert [(each["judge_version"], each["cell"]["value"]) for each in report["entries"]] == [(1, 0.6), (2, 0.8)]


def test_only_the_first_responses_where_that_is_asked_for():
    _, cases, context = run(CLOSE, max_responses=1)
    assert {case.subject["example"] for case in cases_with_tags(cases, ["judge:judge 1"])} == {
        "p0"
    } and context.asked == {1: 2}


def test_without_grades_there_is_nothing_to_score():
    bare = [each.model_copy(update={"meta": {}}) for each in EXAMPLES]
    with pytest.raises(NothingToScore, match="graded by a person"):
        FakeContext(
            "criterion_audit", {"judges": [{"version": 1}]}, bare, {1: Judge({"kind": "criterion"}, says(MILD))}
        ).run()


def test_grades_of_imports_count_and_those_of_models_do_not():
    said = [{"criterion_id": "polite", "met": True, "source": source} for source in ("human", "judge")]
    meta = {"verdicts": [{"response": "x", "rater": "human grader", "verdicts": said[:1]}]}
    (found,) = graded(EXAMPLES[0].model_copy(update={"meta": meta}))
    assert (found.criterion.id, found.raters) == ("polite", {"human grader": True})
    meta["verdicts"][0]["verdicts"] = said[1:]
    assert graded(EXAMPLES[0].model_copy(update={"meta": meta})) == []


@pytest.mark.parametrize(
    "meta",
    [
        {"annotation": "x", "verdicts": 3},
        {"annotation": {"1": {"tasks": [1, {"grades": {"polite": []}}]}}},
        {"verdicts": [None, {"verdicts": [{}]}]},
    ],
)
def test_imported_data_of_any_shape_is_no_grade_and_no_mistake(meta):
    assert graded(EXAMPLES[0].model_copy(update={"meta": meta})) == []


def test_one_graded_response_alone_still_has_an_interval_over_its_criteria():
    only = FakeContext(
        "criterion_audit", {"judges": [{"version": 1}]}, EXAMPLES[:1], {1: Judge({"kind": "criterion"}, says(CLOSE))}
    )
    cell = row(only.run()[0], "Judges against people", "judge 1")["Agreement"]
    assert (cell["value"], cell["n"]) == (0.5, 2) and cell["low"] == 0.0 and cell["high"] == 1.0


def test_what_a_licence_shows_can_be_worked_out_again_from_the_stored_cases():
    report, cases, _ = run(MILD, CLOSE)
    again = RECIPES["criterion_audit"].known_again(EXAMPLES, cases)
    assert again == {each["name"]: each["known"] for each in report["entries"]}
    assert again["judge 2"]["kappa"]["value"] == 1.0 and again["judge 2"]["place"] in ("below", "within", "above")


def test_where_one_person_graded_alone_the_human_range_is_said_to_be_unknown():
    def alone(each):
        note = each.meta["annotation"]["7"]
        return each.model_copy(update={"meta": {"annotation": {"7": note | {"tasks": note["tasks"][:1]}}}})

    context = FakeContext(
        "criterion_audit",
        {"judges": [{"version": 1}]},
        [alone(each) for each in EXAMPLES],
        {1: Judge({"kind": "criterion"}, says(MILD))},
    )
    known = context.run()[0]["entries"][0]["known"]
    assert "place" not in known and known["place_why"] == "two people or more judged none of these criteria"
