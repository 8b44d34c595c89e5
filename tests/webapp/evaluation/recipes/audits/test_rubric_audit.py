"""Rubric audit by hand: criteria that decide nothing, criteria that say the same, and demands that the rubric does not have."""

import pytest

from trainer.contracts import Criterion, Example, Message, Preference, Response, Rubric, VerifierSpec

from ..fake import FakeContext, Judge, cases_with_tags, row


def contains(word: str) -> VerifierSpec:
    return VerifierSpec(name="must_contain", args={"texts": [word]})


RUBRIC = Rubric(
    criteria=(
        Criterion(
            id="c1", text="Mentions the word apple", points=2, importance="essential", verifier=contains("apple")
        ),
        Criterion(id="c2", text="Mentions the word banana", points=1, verifier=contains("banana")),
        Criterion(id="c3", text="Names the colour of it", points=1, verifier=contains("red")),
        Criterion(id="c4", text="Is kind to the reader", points=1),
    )
)
TEXTS = ["apple red", "apple", "apple red", "apple", "apple red"]
EXAMPLE = Example(
    key="e",
    prompt=(Message(role="user", content="?"),),
    rubric=RUBRIC,
    responses=tuple(Response(id=f"r{i}", text=text) for i, text in enumerate(TEXTS)),
)


def test_criteria_that_tell_nothing_are_found():
    report, cases = FakeContext("rubric_audit", {}, [EXAMPLE]).run()
    assert [case.values["power"] for case in cases] == ["all_meet", "none_meets", "discriminates", "unknown"]
    head = report["headline"]["cell"]
    assert (round(head["value"], 3), head["n"], head["missing"]) == (0.667, 3, 1)
    assert len(cases_with_tags(cases, head["tags"])) == 2
    assert row(report, "Do criteria tell responses apart?", "Every response meets it")["Share"]["value"] == 0.25


def test_the_share_of_a_criterion_has_its_number_and_interval():
    _, cases = FakeContext("rubric_audit", {}, [EXAMPLE]).run()
    always, _, some, undecided = (case.values for case in cases)
    # Wilson's intervals of 3 and of 5 of 5 responses (1927)
    assert (some["met"], some["met: n"], some["met: 95% interval"]) == (0.6, 5, "0.231 to 0.882")
    assert (always["met"], always["met: n"], always["met: 95% interval"]) == (1.0, 5, "0.566 to 1.000")
    assert (undecided["met"], undecided["met: why"]) == (None, "no verdict") and "met: n" not in undecided
    assert some["order changes without it"] is None and some["order changes without it: why"]


def test_a_judge_decides_what_verifiers_cannot():
    kind = Judge(
        {"kind": "criterion"},
        lambda given, subject: {"explanation": "", "met": "red" in given.responses[subject["response"]]},
    )
    report, cases = FakeContext("rubric_audit", {"judge": 1}, [EXAMPLE], {1: kind}).run()
    assert cases[3].values["power"] == "discriminates"
    assert "redundant" in cases[2].tags and "redundant" in cases[3].tags  # the red responses meet both
    assert cases[0].values["weight"] == 0.4


def test_coverage_of_what_the_instruction_demands():
    items = [{"text": f"Demand {i}", "kind": "hard", "importance": "essential", "points": 1} for i in range(4)]
    judges = {
        2: Judge({"kind": "rubric_generator"}, lambda given, subject: {"items": items}),
        3: Judge({"kind": "rubric_matcher"}, lambda given, subject: {"matches": [{"generated": 1, "reference": 2}]}),
    }
    report, cases = FakeContext("rubric_audit", {"lister": 2, "matcher": 3}, [EXAMPLE], judges).run()
    covered = row(report, "Coverage of the instruction", "Demands covered")["Mean over rubrics"]
    assert covered["value"] == 0.25
    passed_over = cases_with_tags(cases, covered["tags"])
    assert [case.subject["demand"] for case in passed_over] == ["Demand 0", "Demand 2", "Demand 3"]
    assert len(passed_over[0].values["verdicts"]) == 2  # the judge that listed it and the judge that matched it


def test_a_criterion_opens_to_the_verdicts_on_itself_alone():
    judge = Judge({"kind": "criterion"}, lambda given, subject: {"explanation": "", "met": True})
    _, cases = FakeContext("rubric_audit", {"judge": 1}, [EXAMPLE], {1: judge}).run()
    assert [len(case.values["verdicts"]) for case in cases] == [0, 0, 0, 5]  # verifiers decide the other criteria


def test_examples_without_a_rubric_are_counted():
    bare = EXAMPLE.model_copy(update={"key": "bare", "rubric": None})
    report, cases = FakeContext("rubric_audit", {}, [bare, EXAMPLE]).run()
    counted = dict(report["coverage"])["Without a rubric"]
    assert counted["value"] == 1 and cases_with_tags(cases, counted["tags"])[0].subject == {"example": "bare"}


def test_a_rubric_without_responses_is_still_read():
    report, cases = FakeContext("rubric_audit", {}, [EXAMPLE.model_copy(update={"responses": ()})]).run()
    assert {case.values["power"] for case in cases} == {"unknown"}
    assert report["headline"]["cell"]["value"] is None


def pair(key: str, better: str, worse: str) -> Example:
    return Example(
        key=key,
        prompt=(Message(role="user", content="?"),),
        rubric=Rubric(
            criteria=(Criterion(id="k1", text="Is kind", points=3), Criterion(id="k2", text="Is short", points=1))
        ),
        responses=(Response(id="x", text=better), Response(id="y", text=worse)),
        preferences=(Preference(a="x", b="y", strength=-1),),
    )


COMPARED = [pair("p1", "10 10", "1 1"), pair("p2", "4 10", "7 1"), pair("p3", "5 5", "5 5"), pair("p4", "9 9", "? ?")]


def by_text(given, subject):
    """The texts are the ratings of the two criteria."""
    said = given.responses[subject["response"]].split()
    if "?" in said:
        return None
    return {"ratings": [{"number": n, "explanation": "", "rating": int(each)} for n, each in enumerate(said, 1)]}


def test_likert_scores_by_the_rubric_rank_pairs_as_people_did_or_not():
    judges = {6: Judge({"kind": "likert"}, by_text)}
    report, cases = FakeContext("rubric_audit", {"likert": 6}, COMPARED, judges).run()
    found = row(report, "Do scores rank answers as people did?", "Rated by the rubric, item by item")
    # p1: 1 against 0; p2: (3 * 3/9 + 1) / 4 = 0.5 against (3 * 6/9 + 0) / 4 = 0.5, a tie; p3 a tie; p4 has no score
    assert (found["Accuracy"]["value"], found["Accuracy"]["n"], found["Accuracy"]["missing"]) == (
        pytest.approx(1 / 3),
        3,
        1,
    )
    assert found["Ties"]["value"] == 2
    # differences 1, 0, 0: mean 1/3, standard deviation 1/sqrt(3)
    assert found["Cohen's d"]["value"] == pytest.approx(3**-0.5)
    (right,) = cases_with_tags(cases, found["Accuracy"]["tags"])
    assert right.subject["example"] == "p1" and right.values["lead"] == 1


def test_the_baseline_rates_the_same_pairs_without_a_rubric():
    def whole(given, subject):
        return {"explanation": "", "rating": 10 if given.responses[subject["response"]] == "10 10" else 4}

    judges = {7: Judge({"kind": "pointwise"}, whole)}
    report, _ = FakeContext("rubric_audit", {"pointwise": 7}, COMPARED, judges).run()
    found = row(report, "Do scores rank answers as people did?", "Rated as a whole, without a rubric")
    assert (found["Accuracy"]["value"], found["Ties"]["value"]) == (0.25, 3)


def test_a_judge_of_rubrics_rates_each_and_names_its_faults():
    def rated(given, subject):
        if given.example == "p4":
            return None
        return {
            "problems": ["vague"] if given.example == "p1" else [],
            "explanation": "",
            "score": 1 if given.example == "p1" else 4,
        }

    report, cases = FakeContext(
        "rubric_audit", {"quality": 8}, COMPARED, {8: Judge({"kind": "rubric_quality"}, rated)}
    ).run()
    mean = row(report, "Quality of the rubrics", "Mean")["Rubrics"]
    assert (mean["value"], mean["n"], mean["missing"]) == (3.0, 3, 1)
    lowest = row(report, "Quality of the rubrics", "1")["Rubrics"]
    assert lowest["value"] == pytest.approx(1 / 3)
    (case,) = cases_with_tags(cases, lowest["tags"])
    assert case.subject["example"] == "p1" and case.values["faults"] == ["vague"]
