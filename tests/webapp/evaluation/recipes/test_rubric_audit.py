"""Rubric audit by hand: criteria that decide nothing, say the same, and what the rubric passes over."""

from trainer.contracts import Criterion, Example, Message, Response, Rubric, VerifierSpec

from .fake import FakeContext, Judge, carrying, row


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
    assert len(carrying(cases, head["tags"])) == 2
    assert row(report, "Do criteria tell responses apart?", "Every response meets it")["Share"]["value"] == 0.25


def test_a_judge_decides_what_verifiers_cannot():
    kind = Judge(
        {"kind": "criterion"},
        lambda given, subject: {"explanation": "", "met": "red" in given.responses[subject["response"]]},
    )
    report, cases = FakeContext("rubric_audit", {"judge": 1}, [EXAMPLE], {1: kind}).run()
    assert cases[3].values["power"] == "discriminates"
    assert "redundant" in cases[2].tags and "redundant" in cases[3].tags  # both are met by the red ones
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
    passed_over = carrying(cases, covered["tags"])
    assert [case.subject["demand"] for case in passed_over] == ["Demand 0", "Demand 2", "Demand 3"]
    assert len(passed_over[0].values["verdicts"]) == 2  # what listed it and what matched it


def test_a_criterion_opens_to_the_verdicts_on_itself_alone():
    judge = Judge({"kind": "criterion"}, lambda given, subject: {"explanation": "", "met": True})
    _, cases = FakeContext("rubric_audit", {"judge": 1}, [EXAMPLE], {1: judge}).run()
    assert [len(case.values["verdicts"]) for case in cases] == [0, 0, 0, 5]  # verifiers decide the others


def test_examples_without_a_rubric_are_counted():
    bare = EXAMPLE.model_copy(update={"key": "bare", "rubric": None})
    report, cases = FakeContext("rubric_audit", {}, [bare, EXAMPLE]).run()
    counted = dict(report["coverage"])["Without a rubric"]
    assert counted["value"] == 1 and carrying(cases, counted["tags"])[0].subject == {"example": "bare"}


def test_a_rubric_without_responses_is_still_read():
    report, cases = FakeContext("rubric_audit", {}, [EXAMPLE.model_copy(update={"responses": ()})]).run()
    assert {case.values["power"] for case in cases} == {"unknown"}
    assert report["headline"]["cell"]["value"] is None
